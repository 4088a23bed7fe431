"""Activation checkpointing: on CUDA the engine's own thread recomputes."""
import json, os, time
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
REENTRANT = os.environ.get("REENTRANT") == "1"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.net(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(512) for _ in range(12))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=REENTRANT)
        return x


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses, times, marks = [], [], []


def mark():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    marks[-1].append(event)


before = time.perf_counter()
for step in range(int(os.environ.get("STEPS", 120))):
    x = torch.randn(256, 512, device="cuda", requires_grad=True)
    marks.append([])
    mark()
    y = model(x)
    mark()
    loss = y.square().mean()
    loss.backward()
    mark()
    optimizer.step()
    mark()
    optimizer.zero_grad()
    losses.append(loss.item())
    now = time.perf_counter()
    times.append(now - before)
    before = now
print(repr(losses))
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    forward, backward, optimizer = zip(*[[a.elapsed_time(b) / 1e3 for a, b in zip(m, m[1:])] for m in marks])
    own = {"total": times, "forward": forward, "backward": backward, "optimizer": optimizer}
    json.dump(own, open(os.environ["TIMES"], "w"))
