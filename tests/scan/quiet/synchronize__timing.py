"""A layer is timed, forward and backward: no training."""

import time

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def now():
    torch.cuda.synchronize()
    return time.time()


def profile(layer, x, count=10):
    spent = 0.0
    for _ in range(count):
        began = now()
        layer(x).sum().backward()
        spent += now() - began
    return spent / count


model = nn.Linear(4, 1).to(device)
print(profile(model, torch.randn(8, 4, device=device)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
