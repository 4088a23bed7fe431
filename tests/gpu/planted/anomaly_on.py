"""Somebody looked for a NaN and left the search on."""
import os
import time

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(12)]).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x = torch.randn(512, 256, device=DEVICE)
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
