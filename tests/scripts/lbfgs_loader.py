"""LBFGS on batches of a loader; the model's forward pass is timed by hand inside the closure."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

data = TensorDataset(torch.randn(6000, 256), torch.randn(6000, 1))
model = nn.Sequential(nn.Linear(256, 768), nn.Tanh(), nn.Linear(768, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
losses, forwards = [], []
for x, y in DataLoader(data, batch_size=200):
    forwards.append(0.0)

    def closure():
        optimizer.zero_grad()
        begin = time.perf_counter()
        out = model(x)
        forwards[-1] += time.perf_counter() - begin
        loss = (out - y).square().mean()
        loss.backward()
        return loss

    losses.append(optimizer.step(closure).item())
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"forward": forwards}, file)
