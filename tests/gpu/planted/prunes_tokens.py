"""Tokens that have become small are dropped after every layer, by a mask: the host waits for the GPU to count the rest."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, TOKENS, DEPTH = (1024, 8192, 24) if DEVICE == "cuda" else (64, 512, 4)


class Layer(nn.Module):
    """Mixes the channels of a token."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + F.gelu(self.mix(self.norm(x)))


class Pruned(nn.Module):
    """Layers; each sees only those tokens that are still large enough."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 16)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            x = x[x.square().mean(-1) > 0.8]
        return self.head(x).mean(0)


def main():
    torch.manual_seed(0)
    model = Pruned().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    target = torch.randn(16, device=DEVICE)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        tokens = torch.randn(TOKENS, WIDTH, device=DEVICE)
        loss = F.mse_loss(model(tokens), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
