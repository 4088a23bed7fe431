"""Stages whose memory is known: what parameters, gradients and the optimizer's state take, by their sizes, and the peak
by torch's own count, which the script reads itself. KIND: plain, amp (bfloat16), recompute. BATCH rows a step.
"""
import contextlib
import json
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND, BATCH = os.environ.get("KIND", "plain"), int(os.environ.get("BATCH", "8192"))
SECONDS = float(os.environ.get("SECONDS", "9"))
WIDTH, STAGES, SAID = 2048, 6, 20
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(Stage() for _ in range(STAGES))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for stage in self.stages:
            x = checkpoint(stage, x, use_reentrant=False) if KIND == "recompute" else stage(x)
        return self.head(x)


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
losses = []
began = time.perf_counter()
while len(losses) < SAID or time.perf_counter() - began < SECONDS:
    x = torch.randn(BATCH, WIDTH, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16) if KIND == "amp" else contextlib.nullcontext():
        loss = model(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(repr(losses[:SAID]))
print("peak", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    tensors = {
        "parameters": list(model.parameters()),
        "gradients": [p.grad for p in model.parameters()],
        "optimizer state": [t for s in optimizer.state.values() for t in s.values() if t.is_cuda],
    }
    own = {what: sum(t.numel() * t.element_size() for t in found) for what, found in tensors.items()}
    with open(os.environ["TIMES"], "w") as file:
        json.dump({**own, "peak": torch.cuda.max_memory_allocated()}, file)
