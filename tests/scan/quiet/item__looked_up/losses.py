"""Of its classes the one is made that a file of settings names."""

from torch import nn


class Squared(nn.Module):
    def forward(self, x):
        self.last = x.square().mean().item()
        return x.square().mean()


class Absolute(nn.Module):
    def forward(self, x):
        return x.abs().mean()
