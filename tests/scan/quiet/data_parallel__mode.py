"""Only where it is asked for by its name."""

import torch
from settings import Mode, settings
from torch import nn
from torch.nn.parallel import DistributedDataParallel

model = nn.Linear(4, 1).cuda()
if settings.mode == Mode.DATA_PARALLEL:
    model = nn.DataParallel(model)
elif settings.mode == "ddp":
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
