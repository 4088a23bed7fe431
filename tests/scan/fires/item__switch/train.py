"""A switch that is on by default in another file."""

import switches
import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, collects=None):
        super().__init__()
        self.collects = switches.COLLECTS if collects is None else collects

    def forward(self, x):
        if self.collects:
            self.mean = x.mean().item()  # finds: item
        return x.square().mean()


model = nn.Linear(4, 1).cuda()
criterion = Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = criterion(model(torch.randn(8, 4, device="cuda")))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
