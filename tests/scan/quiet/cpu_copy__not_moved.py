"""The numbers of the samples stay where the loader has put them."""

import torch
from torch import nn

from data import loader

device = torch.device("cuda")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for x, y, index in loader:
    x, y = x.to(device), y.to(device)
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seen += index.cpu().tolist()
