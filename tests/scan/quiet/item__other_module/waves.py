from torch import nn


class Wave(nn.Module):
    def forward(self, x):
        return x * x.max().item()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wave = Wave()

    def forward(self, x):
        return self.wave(x)
