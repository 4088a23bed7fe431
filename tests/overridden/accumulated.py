"""Ways to take a step: with a closure, with a scaler, with DDP, with gradients cleared afterwards and by the model.

Argument: samples of a batch.
"""

import json
import os
import sys

import torch
from torch import nn

SIZE = int(sys.argv[1])
SAMPLES = 32
KEPT = []  # torch may hang where a group's last owner goes while gloo still cleans up


def made():
    torch.set_num_threads(1)  # else how a sum is split depends on the machine's load
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.05)


def batches():
    x = torch.randn(SAMPLES, 6, generator=torch.Generator().manual_seed(1))
    return x.split(SIZE)


def error(model, x):
    return (model(x) - x.sum(1, keepdim=True)).square().mean()


def with_closure():
    model, optimizer = made()
    for x in batches():

        def closure(x=x):
            optimizer.zero_grad()
            loss = error(model, x)
            loss.backward()
            return loss

        assert optimizer.step(closure) is not None
    return model, optimizer


def with_scaler():
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for number, x in enumerate(batches()):
        weight = float("inf") if number * SIZE == SAMPLES // 2 else 1.0
        scaler.scale(weight * error(model, x)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return model, optimizer, {"scale": scaler.get_scale()}


def with_ranks():
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=0, world_size=1)
    model, optimizer = made()
    ddp = nn.parallel.DistributedDataParallel(model)
    KEPT.append(ddp)
    reduced = []

    def reduce(_, bucket):
        reduced.append(True)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, reduce)
    for x in batches():
        error(ddp, x).backward()
        optimizer.step()
        ddp.zero_grad()
    return model, optimizer, {"reduced": len(reduced)}


def told(model, optimizer, more=None):
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    return {"weights": weights.tolist(), "steps": optimizer.state[model[0].weight]["step"].item(), **(more or {})}


if __name__ == "__main__":
    print(json.dumps({way.__name__: told(*way()) for way in (with_closure, with_scaler, with_ranks)}))
