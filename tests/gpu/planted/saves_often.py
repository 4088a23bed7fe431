"""Weights and optimizer state are saved every twenty steps."""
import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH = 2048 if DEVICE == "cuda" else 256


def save(folder, step, model, optimizer):
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, folder / "last.pt")


def train(folder):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(6)]).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(4096 if DEVICE == "cuda" else 64, WIDTH, device=DEVICE)
    end, step = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 20 == 0:
            save(folder, step, model, optimizer)
    return step


with tempfile.TemporaryDirectory() as folder:
    print(train(Path(folder)), "steps")
