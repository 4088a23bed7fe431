import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(nn.Linear(4, 1).cuda(), device_ids=[0], find_unused_parameters=True)  # finds: find-unused
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
