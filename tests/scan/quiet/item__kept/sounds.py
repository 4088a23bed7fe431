from torch import nn


class Spectrum(nn.Module):
    def forward(self, x):
        return x * x.max().item()


_spectrum = Spectrum()


def normal(x):
    return x * 2


def spectrum():
    return _spectrum
