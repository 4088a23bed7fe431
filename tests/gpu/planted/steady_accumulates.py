"""Healthy: gradients of four batches for each optimizer step, weights in bfloat16, scalars now and then."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, BATCH = (6144, 4096) if DEVICE == "cuda" else (256, 64)


class Draws(IterableDataset):
    """Numbers to begin with; the batches themselves are made on the GPU."""

    def __iter__(self):
        end, seed = time.perf_counter() + SECONDS, 0
        while time.perf_counter() < end:
            yield seed
            seed += 1


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(F.relu(self.up(x)))


class Trainer:
    def __init__(self, every=4):
        torch.manual_seed(0)
        self.model = nn.Sequential(Expert(), Expert(), Expert()).to(DEVICE, torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.every = every

    def micro_step(self, seed):
        x = torch.randn(BATCH, WIDTH, device=DEVICE, dtype=torch.bfloat16)
        loss = F.mse_loss(self.model(x), x.roll(1, dims=1)) / self.every
        loss.backward()
        if (seed + 1) % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        if seed % 100 == 0:
            print(seed, loss.item() * self.every)


trainer = Trainer()
for seed in DataLoader(Draws(), batch_size=None):
    trainer.micro_step(seed)
