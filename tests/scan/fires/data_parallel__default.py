"""Two branches have it; the default leads to one."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="resnet18")
args = parser.parse_args()
model = nn.Sequential(nn.Conv2d(3, 8, 3))
if args.arch.startswith("vgg"):
    model[0] = nn.DataParallel(model[0])
    model.cuda()
else:
    model = nn.DataParallel(model).cuda()  # finds: data-parallel
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 3, 32, 32, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
