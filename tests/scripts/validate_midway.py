"""Validation every ten steps, in the middle of an epoch; timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

train = DataLoader(TensorDataset(torch.randn(1600, 256), torch.randn(1600, 1)), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(640, 256), torch.randn(640, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
losses, evals = [], []
for epoch in range(1):
    for step, (x, y) in enumerate(train):
        model.train()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        begin = time.perf_counter()
        if step % 10 == 9:
            model.eval()
            with torch.inference_mode():
                print(step, repr(sum(nn.functional.mse_loss(model(a), b).item() for a, b in val)))
        evals.append(time.perf_counter() - begin)
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"eval": evals}, file)
