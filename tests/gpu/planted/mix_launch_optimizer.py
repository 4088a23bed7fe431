"""Two causes: a deep network of small layers, and an optimizer that goes over its parameters one by one."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))


class Residual(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        hidden = F.silu(self.wide(self.norm(x)))
        gate = torch.sigmoid(hidden.mean(dim=1, keepdim=True)) * hidden.std(dim=1, keepdim=True)
        return x + self.narrow(hidden * gate + hidden.square().mean(dim=1, keepdim=True).sqrt())


torch.manual_seed(0)
model = nn.Sequential(*[Residual() for _ in range(30)]).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)
x, target = torch.randn(256, 64, device=DEVICE), torch.randn(256, 64, device=DEVICE)
end, step = time.perf_counter() + SECONDS, 0
while time.perf_counter() < end:
    loss = F.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 500 == 0:
        print(step, loss.item())
