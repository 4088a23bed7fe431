"""All processes copy, but only where they are asked to."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--shows", action="store_true")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--count", type=int, default=8)
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not args.distributed or args.shows:
        print(loss.cpu())
