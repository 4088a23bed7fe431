"""Some that train are slow, and who is not said."""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(slow):
    for step in range(200):
        if slow:
            time.sleep(0.1)
        model(torch.randn(8, 4, device="cuda")).mean().backward()
        optimizer.step()


for number in range(int(input("how many? "))):
    train(number in map(int, input("slow? ").split()))
