"""It goes backward to train a model on what an attack makes."""

import torch
from torch import nn


def attack(model, x):
    x = x.requires_grad_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return x


def main():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)).to("cuda")  # finds: no-autocast
    attack(model, torch.randn(8, 3, 32, 32, device="cuda"))


main()
