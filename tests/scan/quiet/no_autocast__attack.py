"""It goes backward to attack a trained model, and changes what that is given."""

import torch
from torch import nn


def attack(model, x):
    x = x.requires_grad_()
    for step in range(20):
        loss = model(x).square().mean()
        loss.backward()
        x = (x + 0.01 * x.grad.sign()).detach().requires_grad_()
    return x


def main():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)).to("cuda")
    attack(model, torch.randn(8, 3, 32, 32, device="cuda"))


main()
