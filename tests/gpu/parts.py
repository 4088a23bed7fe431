"""Stages of known cost, each timed by CUDA events that the script records itself. Kernels large enough to keep the GPU
busy, so that the time between two events is that of the kernels between them. Long enough for both windows.
"""
import json
import os
import statistics
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH, ROWS, SAID = 4096, 8192, 30
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
events = {}  # (stage, pass) -> pairs of events
opened = {}  # stage -> the event at which its backward pass began
kept = {}  # stage -> bytes that its forward pass left allocated, in the last step


def now():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Timer(torch.autograd.Function):
    """Stands at a border of a stage: the engine passes it after all that came later, before all that came earlier."""

    @staticmethod
    def forward(ctx, x, name, is_output):
        ctx.border = name, is_output
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        name, is_output = ctx.border
        if is_output:
            opened[name] = now()
        else:
            events.setdefault((name, "backward"), []).append((opened.pop(name), now()))
        return gradient, None, None


class Stage(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(64, WIDTH)
        self.stages = nn.ModuleList([Stage(1), Stage(4)])
        self.again = Stage(2)
        self.reduced = Stage(2)
        self.head = nn.Linear(WIDTH, 1)

    def timed(self, name, stage, x):
        x = Timer.apply(x, name, False)
        before, began = torch.cuda.memory_allocated(), now()
        x = stage(x)
        events.setdefault((name, "forward"), []).append((began, now()))
        kept[name] = torch.cuda.memory_allocated() - before
        return Timer.apply(x, name, True)

    def forward(self, x):
        x = self.stem(x)
        for number, stage in enumerate(self.stages):
            x = self.timed("stages.%d" % number, stage, x)
        x = self.timed("again", lambda x: checkpoint(self.again, x, use_reentrant=False), x)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = self.timed("reduced", self.reduced, x)
        return self.head(x.float())


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
losses = []
began = time.perf_counter()
while len(losses) < SAID or time.perf_counter() - began < SECONDS:
    x = torch.randn(ROWS, 64, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(repr(losses[:SAID]))
print("peak", torch.cuda.max_memory_allocated())
torch.cuda.synchronize()
if os.environ.get("TIMES"):
    times = {"kept": kept}
    for (name, phase), pairs in events.items():
        milliseconds = [begin.elapsed_time(end) for begin, end in pairs[len(pairs) // 4 :]]
        times.setdefault(phase, {})[name] = statistics.median(milliseconds) * 1e-3
    with open(os.environ["TIMES"], "w") as file:
        json.dump(times, file)
