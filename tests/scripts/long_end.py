"""An endless stream cut off by a count, and much to do after training; each iteration is timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def forever(loader):
    while True:
        yield from loader


def summarise(model):
    return sum(abs(value) for _ in range(10) for p in model.parameters() for value in p.flatten().tolist())


loader = DataLoader(TensorDataset(torch.randn(1000, 256), torch.randn(1000, 1)), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
stream, losses, walls = forever(loader), [], []
for step in range(200):
    top = time.perf_counter()
    x, y = next(stream)
    x, y = x.to(device), y.to(device)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    walls.append(time.perf_counter() - top)
print(losses)
print(repr(summarise(model)))
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"step": walls}, file)
