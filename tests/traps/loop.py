"""The loop that the traps share. It prints the seconds a step that its own clock saw, once steps are steady."""

from __future__ import annotations

import sys
import time

import torch

BY_HAND = "--by-hand" in sys.argv  # the popular fix, made in the program itself
WARMUP = 20  # steps that are not counted


def train(model, batches, optimizer, *, autocast=False):
    """One pass over the batches."""
    starts = []
    for inputs, targets in batches:
        starts.append(time.perf_counter())
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            outputs = model(inputs)
        loss = torch.nn.functional.mse_loss(outputs.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print((starts[-1] - starts[WARMUP]) / (len(starts) - 1 - WARMUP))
