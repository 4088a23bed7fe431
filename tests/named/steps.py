"""Three small updates make one step, and only the program knows it."""

import torch
from torch import nn

import floorit

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    for _ in range(3):
        loss = model(torch.randn(512, 256)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    floorit.step()
