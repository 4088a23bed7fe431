"""The default is another."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--algorithm", default="scaled+absolute")
args = parser.parse_args()


class Squared(nn.Module):
    def forward(self, x):
        self.last = x.square().mean().item()
        return x.square().mean()


class Absolute(nn.Module):
    def forward(self, x):
        return x.abs().mean()


criterion = Squared() if args.algorithm.find("squared") > -1 else Absolute()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    loss = criterion(model(torch.randn(8, 4, device="cuda")))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
