"""The model that another file makes lies on the GPU."""

import torch
from models import made

model = made()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # finds: not-fused
for step in range(20):
    loss = model(step).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
