import torch
from torch import nn

NAMES = ["dense", "wide", "deep"]


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


class Wide(Dense):
    def forward(self, x):
        self.seen = x.mean().item()  # finds: item
        return self.layer(x)


def make(args):
    assert args.model in NAMES
    if args.model == "wide":
        return Wide().to(args.device)
    return Dense().to(args.device)


def train(model, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(200):
        loss = model(torch.randn(8, 4, device=device)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
