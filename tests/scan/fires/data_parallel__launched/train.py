"""The other choice than DDP, to which one command of two leads."""

import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--launcher", default="none")
args = parser.parse_args()

model = nn.Linear(4, 1).cuda()
if args.launcher != "none":
    model = DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)  # finds: data-parallel
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device="cuda")).mean().backward()
    optimizer.step()
