"""A training loop on the CPU in which the recorder's profiler is replaced by one that claims to see a GPU.

FAIL names a call of it that raises. The stand-in says that a kernel runs in the first half of each 10 ms.
"""

import json
import os
import sys
import time

import torch
from torch import nn

FAIL = os.environ.get("FAIL", "")


class Done:
    def query(self):
        return True


class Seen:
    def __init__(self, began):
        self.began, self.ended = began, time.time_ns()

    def save(self, path):
        if FAIL == "save":
            raise OSError("no room")
        events = []
        for number, begin in enumerate(range(self.began, self.ended, 10_000_000)):
            ts = (begin - self.began) / 1e3
            launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts - 20, "dur": 10, "tid": 1}
            kernel = {"ph": "X", "cat": "kernel", "name": "ampere_sgemm", "ts": ts, "dur": 5000, "tid": 7}
            events.append({**launch, "args": {"correlation": number}})
            events.append({**kernel, "args": {"correlation": number, "stream": 7, "device": 0}})
        with open(path, "w") as file:
            json.dump({"traceEvents": events, "baseTimeNanoseconds": self.began}, file)


class StandIn:
    is_on_gpu = True

    def __init__(self, torch, has_graphs):
        self.began = None

    def capturing(self):
        return False

    def start(self):
        if FAIL == "start":
            raise RuntimeError("CUPTI is busy")
        time.sleep(0.3)  # as long as CUPTI may take the first time
        self.began = time.time_ns()

    def mark(self):
        return Done()

    def stop(self, take_down):
        if FAIL == "stop":
            raise RuntimeError("lost")
        return Seen(self.began)

    def cancel(self):
        self.began = None

    def is_down(self):
        return True

    def let_be(self):
        pass

    def facts(self):
        return {}


recorder = sys.modules.get("_floorit.windows")
if recorder is not None and not os.environ.get("AS_IT_IS"):
    StandIn.looks_every = recorder.Kineto.looks_every
    recorder.Kineto, recorder.obstacle = StandIn, lambda torch: None

torch.manual_seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
losses = []
for step in range(int(os.environ.get("STEPS", "300"))):
    x = torch.randn(8, 16)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    time.sleep(0.02)
    if os.environ.get("OWN_PROFILER") and step == 5:
        with torch.profiler.profile() as profile:
            torch.ones(3)
        assert profile.events()
print(repr(losses[:200]))
