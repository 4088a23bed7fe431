"""Batches of one kind are passed by: how many is not said."""

import torch
from torch import nn
from data import loader

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    x = x.cuda()
    if x.shape[0] == 8:
        continue
    loss = model(x).square()
    loss = loss[loss > 0].mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
