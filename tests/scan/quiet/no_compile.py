import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()
model = nn.Conv2d(3, 8, 3)
model.to("cuda")
if args.compile:
    model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
