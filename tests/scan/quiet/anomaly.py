import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
parser.add_argument("--anomaly", action="store_true")
parser.add_argument("--seed", type=int)
args = parser.parse_args()
torch.autograd.set_detect_anomaly(False)
torch.autograd.set_detect_anomaly(args.anomaly)
if args.debug:
    torch.autograd.set_detect_anomaly(True)
if args.anomaly:
    torch.autograd.set_detect_anomaly(True)
if args.seed is not None:
    torch.autograd.set_detect_anomaly(True)


def look():
    torch.autograd.set_detect_anomaly(True)


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(8, 4)).mean()
    loss.backward()
    optimizer.step()
if args.debug:
    look()
