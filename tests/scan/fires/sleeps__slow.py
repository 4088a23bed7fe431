"""Slow, as its settings say."""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--slow", type=bool, default=True)
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(200):
        if args.slow:
            time.sleep(0.1)  # finds: sleeps
        model(torch.randn(8, 4, device="cuda")).mean().backward()
        optimizer.step()


train()
