"""Somebody gave torch as many threads as the large machine had, and now it runs on a small one."""

import os

import torch
import torch.nn.functional as F
from torch import nn

CORES = len(os.sched_getaffinity(0))
torch.set_num_threads(8 * CORES)
torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self, width=256, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return x


model = Mixer()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
inputs = torch.randn(512, 256)
for step in range(70):
    loss = F.mse_loss(model(inputs), inputs.roll(1, dims=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
