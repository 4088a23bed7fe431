"""Runs out of the GPU's memory on purpose, under a limit of its own, in the phase that is asked for."""

import os

import torch
from torch.utils.data import DataLoader, TensorDataset

PHASE = os.environ["PHASE"]
CAUGHT = os.environ.get("CAUGHT") == "1"
LIMIT = 2 << 30  # bytes
LARGE = 4 << 30  # bytes that do not fit

device = torch.device("cuda:0")
total = torch.cuda.get_device_properties(device).total_memory
torch.cuda.set_per_process_memory_fraction(LIMIT / total, device)


class Grows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        torch.empty(LARGE, dtype=torch.uint8, device=device)
        return gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)
        self.grows = False

    def forward(self, x):
        if self.grows and PHASE in ("forward", "eval"):
            torch.empty(LARGE, dtype=torch.uint8, device=device)
        x = self.layer(x)
        return Grows.apply(x) if self.grows and PHASE == "backward" else x


model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(TensorDataset(torch.randn(64 * 40, 256)), batch_size=64)


def train():
    for number, (x,) in enumerate(data):
        model.grows = number == 30 and PHASE != "eval"
        optimizer.zero_grad()
        model(x.to(device)).square().mean().backward()
        optimizer.step()
    model.eval()
    model.grows = PHASE == "eval"
    with torch.no_grad():
        model(torch.randn(8, 256, device=device))


try:
    train()
except torch.OutOfMemoryError:
    if not CAUGHT:
        raise
    model.grows = False
    model.train()
    PHASE = None
    train()
