import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--alone", dest="distributed", action="store_false")
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
if args.distributed:
    model = DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)
plain = model.module if isinstance(model, nn.DataParallel) else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
