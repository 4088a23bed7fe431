import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--deterministic", action="store_true")
args = parser.parse_args()
if args.seed is not None:
    torch.backends.cudnn.deterministic = True
if args.deterministic:
    torch.use_deterministic_algorithms(True)
torch.backends.cudnn.deterministic = args.deterministic


def evaluate():
    torch.backends.cudnn.deterministic = True


model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
evaluate()
