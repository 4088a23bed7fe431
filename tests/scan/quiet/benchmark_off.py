import argparse

import torch
from torch import nn
from torch.backends import cudnn

parser = argparse.ArgumentParser()
parser.add_argument("--sizes-vary", action="store_true")
args = parser.parse_args()
cudnn.benchmark = True
if args.sizes_vary:
    cudnn.benchmark = False
cudnn.benchmark = not args.sizes_vary
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
