"""A layer of a model that only an option leads to."""

import argparse

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

parser = argparse.ArgumentParser()
parser.add_argument("--sparse", action="store_true")
args = parser.parse_args()


class Sparse(nn.Module):
    def forward(self, x):
        return x * x.max().item()


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Sparse()

    def forward(self, x):
        return self.layer(x)


if args.sparse:
    model = Other().to(device)
else:
    model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
