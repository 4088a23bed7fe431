"""A step in which host and GPU work in turns: it blocks on .item() at a known line, every step."""
import json, os, time
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(20)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
pageable = torch.randn(2048, 2048)
blocked, copied, times = [], [], []
before = time.perf_counter()
for step in range(200):
    t0 = time.perf_counter()
    x = pageable.to("cuda")
    copied.append(time.perf_counter() - t0)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    t0 = time.perf_counter()
    value = loss.item()
    blocked.append(time.perf_counter() - t0)
    now = time.perf_counter()
    times.append(now - before)
    before = now
print(repr(value))
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    json.dump({"sync": blocked, "h2d": copied, "total": times}, open(os.environ["TIMES"], "w"))
