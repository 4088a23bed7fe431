"""DistributedDataParallel over gloo on one GPU: the gradients are much larger than the work."""
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

DEVICE = os.environ.get("DEVICE", "cuda")
STEPS = int(os.environ.get("STEPS", "150"))
WIDTH = 2048 if DEVICE == "cuda" else 512


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Wide().to(DEVICE))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(32, WIDTH, device=DEVICE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


started = time.perf_counter()
main()
print("took", round(time.perf_counter() - started, 1), "s")
