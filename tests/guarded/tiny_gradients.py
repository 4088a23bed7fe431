"""Gradients so small that float16 has no numbers for them, unless they are scaled; --half casts without."""

import argparse

import torch
from torch import nn

SMALL = 1e-6  # of the loss: its gradients are then under 6e-8, the least that float16 can tell from zero
STEPS = 120


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", action="store_true", help="the forward pass in float16, and no scaling")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 / SMALL)
    rows = torch.randn(STEPS, 256, 32)
    targets = rows[..., :1] - rows[..., 1:2]
    for x, y in zip(rows, targets, strict=True):
        with torch.autocast("cpu", torch.float16, enabled=given.half):
            outputs = model(x)
        loss = SMALL * nn.functional.mse_loss(outputs.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
