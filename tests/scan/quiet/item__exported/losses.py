"""A file lets others import a loss that nothing makes."""

from torch import nn

__all__ = ["Plain", "Weighted"]


class Plain(nn.Module):
    def forward(self, x):
        return x.square().mean()


class Weighted(nn.Module):
    def forward(self, x):
        return x.square().mean() * x.max().item()
