"""A layer that forward never uses, and one that it uses only if it is told to, get no gradient in some steps."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Model(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.layer, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.head = nn.Linear(4, classes) if classes else nn.Identity()

    def forward(self, x, turned=False):
        if turned:
            return self.other(x)
        return self.layer(x)


model = DDP(Model().cuda(), device_ids=[0], find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda(), turned=step % 2 == 0).mean().backward()
    optimizer.step()
