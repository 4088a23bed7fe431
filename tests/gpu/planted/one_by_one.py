"""A mixture of many small experts; the optimizer goes over their parameters one by one."""
import os
import time

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))


class Experts(nn.Module):
    """All experts are applied at once, as one product over their stacked weights."""

    def __init__(self, count=400, width=64):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(width, width) * width**-0.5) for _ in range(count))
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(1, width)) for _ in range(count))

    def forward(self, x):
        weight, scale = torch.stack(list(self.weights)), torch.stack(list(self.scales))
        return (torch.bmm(x, weight) * scale).relu()


torch.manual_seed(0)
model = nn.Sequential(Experts(), Experts()).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
x = torch.randn(400, 64, 64, device=DEVICE)
target = torch.randn(400, 64, 64, device=DEVICE)
end, step = time.perf_counter() + SECONDS, 0
while time.perf_counter() < end:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    step += 1
    if step % 500 == 0:
        print(step, loss.item())
