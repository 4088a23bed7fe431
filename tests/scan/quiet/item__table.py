"""Of several losses another is taken by default; what only the rest name is not made either."""

import argparse

import torch
from torch import nn


class Plain(nn.Module):
    def forward(self, x):
        return x.square().mean()


class Scale(nn.Module):
    def forward(self, x):
        return x / x.max().item()


class Scaled(nn.Module):
    def __init__(self):
        super(Scaled, self).__init__()
        self.scale = Scale()

    def forward(self, x):
        return self.scale(x).square().mean() * x.max().item()


parser = argparse.ArgumentParser()
parser.add_argument("--loss", default="plain")
args = parser.parse_args()
LOSSES = {"plain": Plain, "scaled": Scaled}
criterion = LOSSES[args.loss]()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = criterion(model(torch.randn(8, 4, device=device)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
