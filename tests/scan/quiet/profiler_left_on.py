import argparse

import torch
from torch import nn
from torch.profiler import profile, schedule

parser = argparse.ArgumentParser()
parser.add_argument("--profile", action="store_true")
args = parser.parse_args()
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(4):
        model(torch.randn(8, 4)).mean().backward()
        optimizer.step()


with profile(schedule=schedule(wait=1, warmup=1, active=3)):
    train()
with torch.autograd.profiler.profile(enabled=args.profile):
    train()
if args.profile:
    with profile():
        train()
with profile():
    model(torch.randn(8, 4))
