"""Neither DataLoader nor torch.optim nor nn.Module; the forward pass with its loss is timed by hand."""
import json
import os
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

x, y = torch.randn(256, 512).to(device), torch.randn(256, 1).to(device)
w1 = (torch.randn(512, 1024) / 32).to(device).requires_grad_()
w2 = (torch.randn(1024, 1024) / 32).to(device).requires_grad_()
w3 = (torch.randn(1024, 1) / 32).to(device).requires_grad_()
losses, forwards, walls = [], [], []
for step in range(90):
    top = time.perf_counter()
    hidden = (x @ w1).relu()
    hidden = (hidden @ w2).relu()
    loss = (hidden @ w3 - y).square().mean()
    forwards.append(time.perf_counter() - top)
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2, w3):
            w -= 0.01 * w.grad
            w.grad = None
    losses.append(loss.item())
    walls.append(time.perf_counter() - top)
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"step": walls}, file)
