"""Every layer is used, by what forward calls or by a class that inherits from it."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 1)


class Model(Base):
    def forward(self, x, scale=None):
        x = self.layer(x)
        return self.finished(x if scale is None else x * scale)

    def finished(self, x):
        return self.head(x)


model = DDP(Model().cuda(), device_ids=[0], find_unused_parameters=True)  # finds: find-unused
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
