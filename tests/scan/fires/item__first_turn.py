"""Each step has a mean of its own."""

import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for step in range(200):
        mean = None
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if mean is None:
            mean = loss.item()  # finds: item
