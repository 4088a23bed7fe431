import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--unused", action="store_true")
args = parser.parse_args()
model = DDP(nn.Linear(4, 1).cuda(), device_ids=[0], find_unused_parameters=args.unused)
other = DDP(nn.Linear(4, 1).cuda(), device_ids=[0], find_unused_parameters=False)
third = DDP(nn.Linear(4, 1).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
