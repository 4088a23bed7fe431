"""Products in bfloat16 under autocast, large enough to keep the GPU busy: KIND plain, recompute, or small.

Batches come from a loader and lie on the GPU already, so nothing but computing is left.
"""
import json
import os
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = os.environ.get("KIND", "plain")
WIDTH, DEPTH = (256, 4) if KIND == "small" else (8192, 8)
SECONDS = float(os.environ.get("SECONDS", "12"))
torch.manual_seed(0)


class Batches(torch.utils.data.IterableDataset):
    def __iter__(self):
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS:
            count += 1
            yield count


layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(DEPTH)).cuda()
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-6)
x = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
for _ in torch.utils.data.DataLoader(Batches(), batch_size=None):
    with torch.autocast("cuda", torch.bfloat16):
        y = x
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=True) if KIND == "recompute" and y is not x else layer(y)
        loss = y.float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
if os.environ.get("TIMES"):
    product = 2 * WIDTH**3
    again = (DEPTH - 1) * product if KIND == "recompute" else 0
    with open(os.environ["TIMES"], "w") as file:
        json.dump({"flops": (3 * DEPTH - 1) * product + again, "recomputed": again}, file)
