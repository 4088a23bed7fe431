"""What a package exports by a star is made only to evaluate."""

from torch import nn


class Sampler(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        print(x.std().item())
        return self.model(x)
