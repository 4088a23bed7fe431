"""A fused optimizer does not take complex parameters."""

import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4, dtype=torch.cfloat))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x, n=6) @ self.weight, n=4)


model = Spectral().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
