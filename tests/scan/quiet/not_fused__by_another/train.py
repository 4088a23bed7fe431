"""On the CPU: what the other file could do on a GPU nobody asks it for."""

import torch
from models import Model

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(step).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
