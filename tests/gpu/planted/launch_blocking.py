"""A convolutional network, started from a shell in which CUDA_LAUNCH_BLOCKING is still set."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, SIDE = (128, 64) if DEVICE == "cuda" else (16, 16)
torch.manual_seed(0)
layers = [nn.Conv2d(3, WIDTH, 3, padding=1)]
for _ in range(12):
    layers += [nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
images, labels = torch.rand(32, 3, SIDE, SIDE, device=DEVICE), torch.randint(10, (32,), device=DEVICE)
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
