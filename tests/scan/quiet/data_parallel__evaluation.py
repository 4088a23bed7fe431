import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--parallel", action="store_true")
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
if args.parallel:
    model = nn.DataParallel(model)


def evaluate():
    return nn.DataParallel(model)(torch.randn(8, 4))


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
evaluate()
