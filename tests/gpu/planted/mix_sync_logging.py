"""Two causes: each layer's output is checked on the host, and a long line is written for each layer in each step."""
import logging
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, BATCH = (2048, 512) if DEVICE == "cuda" else (128, 32)
log = logging.getLogger("train")


class Checked(nn.Module):
    """A layer that stops where its output has gone astray."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = torch.tanh(self.layer(x))
        if x.abs().amax().item() > 1e3:
            raise FloatingPointError("diverged")
        return x


def note(step, depth, rates):
    for number in range(depth):
        log.info("step %d layer %d rates %s", step, number, rates)


def main():
    logging.basicConfig(filename=os.devnull, level=logging.INFO)
    torch.manual_seed(0)
    model = nn.Sequential(*[Checked() for _ in range(24)]).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(BATCH, WIDTH, device=DEVICE)
    rates = [1e-3 * 0.99**epoch for epoch in range(150)]
    end, step = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        note(step, len(model), rates)
        step += 1


main()
