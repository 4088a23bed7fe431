"""The loop's own bookkeeping takes the time; timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

loader = DataLoader(TensorDataset(torch.randn(480, 128), torch.randn(480, 1)), batch_size=8)
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())


def histogram(model):
    bins = [0] * 20
    for value in model[0].weight.detach().flatten()[:30000].tolist():
        bins[min(19, int((value + 0.1) * 100))] += 1
    return bins


losses, bins, seconds = [], [], []
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    begin = time.perf_counter()
    bins.append(histogram(model))
    for _ in range(2):
        bins[-1] = histogram(model)
    seconds.append(time.perf_counter() - begin)
    losses.append(loss.item())
print(losses, bins[-1])
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"other": seconds}, file)
