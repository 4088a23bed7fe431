"""The numbers of the samples go to the GPU and back."""

import torch
from torch import nn

from data import loader

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for x, y, index in loader:
    x, y, index = x.to(device), y.to(device), index.to(device)
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seen += index.cpu().tolist()  # finds: cpu-copy
