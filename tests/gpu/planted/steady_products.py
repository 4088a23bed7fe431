"""Healthy: a wide network in bfloat16 that keeps the tensor cores busy."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, BATCH = (8192, 8192) if DEVICE == "cuda" else (256, 128)


class Wide(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


torch.manual_seed(0)
model = Wide().to(DEVICE, torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
batches = torch.randn(4, BATCH, WIDTH, device=DEVICE, dtype=torch.bfloat16)
end, step = time.perf_counter() + SECONDS, 0
while time.perf_counter() < end:
    x = batches[step % 4]
    loss = F.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 20 == 0:
        print(step, loss.item())
