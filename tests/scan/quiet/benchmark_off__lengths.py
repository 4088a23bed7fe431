"""Sequences of every length: each would be searched for anew."""

import torch
from torch import nn

torch.backends.cudnn.benchmark = False
model = nn.Conv1d(4, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lengths = [8, 13, 21]
for step in range(20):
    loss = model(torch.randn(8, 4, lengths[step % 3], device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
