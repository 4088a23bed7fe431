"""Whoever has several GPUs gets it."""

import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)  # finds: data-parallel
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
