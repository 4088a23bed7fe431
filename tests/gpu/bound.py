"""A step limited by one thing, KIND: data, sync, launch, copy, compute, or graphed. Long enough for the kernel window.

With PROFILE the script profiles some of its steps itself and writes the trace there, with when they began and ended.
With OWN it starts a profiler of its own: `after` some seconds, or `inside` the recorder's window.
"""
import json
import os
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

KIND = os.environ["KIND"]
STEPS = int(os.environ.get("STEPS", "0"))  # 0: for so many seconds
SECONDS = float(os.environ.get("SECONDS", "14"))
PROFILE, OWN = os.environ.get("PROFILE"), os.environ.get("OWN")
torch.manual_seed(0)
opened, closed = [], []  # when the recorder's window was
recorder = sys.modules.get("_floorit.window")
if recorder is not None:
    begin, end = recorder.Window._open, recorder.Window._end

    def _open(window):
        result = begin(window)
        opened.append(time.perf_counter())
        return result

    def _end(window, *begun):
        closed.append(time.perf_counter())
        return end(window, *begun)

    recorder.Window._open, recorder.Window._end = _open, _end


class Checking(nn.Module):
    """A layer after which the host asks for a number."""

    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        x = self.layer(x)
        if x.sum().item() > 1e30:
            raise ValueError("diverged")
        return x


def layers(kind):
    if kind == "sync":
        return nn.Sequential(*[Checking(2048) for _ in range(20)]), (2048, 2048)
    if kind in ("launch", "graphed"):
        return nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(100)]), (8, 64)
    if kind == "compute":
        return nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(6)]), (4096, 4096)
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)), (256, 1024)


model, shape = layers(KIND)
model = model.cuda()
x = torch.randn(*shape, device="cuda")
if KIND == "graphed":
    model = torch.cuda.make_graphed_callables(model, (x,))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
pageable = torch.randn(64, 1024, 1024) if KIND == "copy" else None


class Batches(torch.utils.data.IterableDataset):
    """Slow to make where data is what limits, free else."""

    def __iter__(self):
        began, count = time.perf_counter(), 0
        while count < STEPS if STEPS else time.perf_counter() - began < SECONDS:
            if KIND == "data":
                time.sleep(0.03)
            count += 1
            yield count


times, profiled, own = [], None, None
before = started = time.perf_counter()
for number in torch.utils.data.DataLoader(Batches(), batch_size=None):
    if PROFILE and profiled is None and before - started > 6:
        torch.cuda.synchronize()  # what was launched before is not seen
        profiled = profile(activities=[ProfilerActivity.CUDA])
        profiled.start()
        first_profiled, marks = len(times), []
    if profiled is not None and profiled is not False:
        marks.append(time.time_ns())
        if len(times) - first_profiled == 12:
            profiled.stop()
            profiled.export_chrome_trace(PROFILE)
            with open(PROFILE + ".marks", "w") as file:
                json.dump([marks[4], marks[10]], file)
            profiled = False
    starts_own = (OWN == "inside" and opened and not closed) or (OWN == "after" and before - started > 11)
    if starts_own and own is None:
        own = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        own.start()
    if pageable is not None:
        batch = pageable.to("cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if own is not None and own is not False:
        own.stop()
        kernels = [event for event in own.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        print("own profiler saw kernels:", bool(kernels))
        own = False
    now = time.perf_counter()
    times.append(now - before)
    before = now
torch.cuda.synchronize()
if STEPS:
    print(repr(loss.item()))
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    with open(os.environ["TIMES"], "w") as file:
        json.dump({"started": started, "times": times, "opened": opened, "closed": closed}, file)
