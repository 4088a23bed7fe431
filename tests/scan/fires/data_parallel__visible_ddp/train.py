"""It sees the GPUs that it is told to see; of several, one for each process if it is told so."""

import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--gpu_id", default="0")
parser.add_argument("--distributed", action="store_true")
args = parser.parse_args()
os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu_id
model = nn.Linear(4, 1).cuda()
if args.distributed:
    model = nn.parallel.DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)  # finds: data-parallel
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
