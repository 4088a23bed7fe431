"""Two ranks that average their gradients after each backward pass, through gloo, as its tutorial does."""
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "16"))
WIDTH = 2048 if DEVICE == "cuda" else 512


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4)]).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(64, WIDTH, device=DEVICE)
    started = time.perf_counter()
    last = torch.zeros(1)
    while not last.item():
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        last.fill_(float(time.perf_counter() - started > SECONDS))
        dist.broadcast(last, 0)
    dist.destroy_process_group()


main()
