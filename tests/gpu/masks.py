"""A step with calls that wait for the GPU because they must know how many elements they choose, and some that need not.

Each is timed here, too; and in its first step torch itself is asked which of them wait.
"""
import json, os, sys, time, warnings
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(2048, 2048, device="cuda")
rows = torch.arange(0, 2048, 2, device="cuda")
times, warned = {}, set()


def busy(h):
    """Work for the GPU that is under way when the next call comes."""
    return model(h)


def timed(name, began):
    times.setdefault(name, []).append((began, time.perf_counter() - began))


def step():
    h = busy(x)
    keep = h.mean(1) > h.mean()
    t = time.perf_counter()
    chosen = h[keep]  # waits: index
    timed("index", t)
    h = busy(h)
    t = time.perf_counter()
    [where] = torch.where(keep)  # waits: where
    timed("where", t)
    h = busy(h)
    t = time.perf_counter()
    most = torch.masked_select(h, h > 0)  # waits: select
    timed("select", t)
    h = busy(h)
    t = time.perf_counter()
    kinds = where.unique()  # waits: unique
    timed("unique", t)
    changed = busy(h).detach().clone()
    t = time.perf_counter()
    changed[keep] = chosen.detach()  # waits: assign
    timed("assign", t)
    plain = h[rows].mean() + h[:4].mean() + torch.where(h > 0, h, -h).mean()
    loss = chosen.mean() + most.mean() + plain + changed.mean() + kinds.float().mean() * 0 + h.mean()
    t = time.perf_counter()
    loss.backward()  # waits: backward
    timed("backward", t)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def note(message, *_):
    """The line of this file that torch warns of."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename != __file__:
        frame = frame.f_back
    if "synchronizing" in str(message):
        warned.add(frame.f_lineno)


step()
torch.cuda.synchronize()
torch.cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings():
    warnings.simplefilter("always")
    warnings.showwarning = note
    step()
torch.cuda.set_sync_debug_mode("default")
times.clear()
for _ in range(int(os.environ.get("STEPS", "400"))):
    loss = step()
print(loss.item())
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    json.dump({"times": times, "warned": sorted(warned)}, open(os.environ["TIMES"], "w"))
