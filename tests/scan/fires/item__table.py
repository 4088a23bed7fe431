"""The loss that is taken by default, and what all of them inherit."""

import argparse

import torch
from torch import nn


class Loss(nn.Module):
    def forward(self, x):
        return self.measure(x) / x.max().item()  # finds: item


class Plain(Loss):
    def measure(self, x):
        return x.square().mean() * x.min().item()  # finds: item


class Absolute(Loss):
    def measure(self, x):
        return x.abs().mean() * x.min().item()


parser = argparse.ArgumentParser()
parser.add_argument("--loss", default="plain")
args = parser.parse_args()
LOSSES = {"plain": Plain, "absolute": Absolute}
criterion = LOSSES[args.loss]()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = criterion(model(torch.randn(8, 4, device=device)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
