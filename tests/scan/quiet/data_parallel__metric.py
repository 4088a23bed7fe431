"""A metric's own model, which is never trained."""

import torch
from torch import nn


def features(device):
    return nn.DataParallel(nn.Conv2d(3, 8, 3)).eval().to(device)


device = torch.device("cuda")
model, judge = nn.Conv2d(3, 3, 3).to(device), features(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 3, 32, 32, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
