"""A method that is called like one of a tensor's is not what a tensor's is."""

import torch
from torch import nn


class Series:
    def max(self, axis):
        return self if axis != 1 else None


model = nn.Linear(4, 4).cuda()
series = Series
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    out = model(torch.randn(4, 4, device="cuda"))
    loss = out.max(out.mean(0)).values.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
