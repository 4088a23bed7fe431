"""A large validation set each epoch; the evaluation is timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

train = DataLoader(TensorDataset(torch.randn(640, 256), torch.randint(0, 10, (640,))), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(2560, 256), torch.randint(0, 10, (2560,))), batch_size=64)
model = nn.Sequential(
    nn.Linear(256, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
evals, walls = [], []


def evaluate():
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in val:
            right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right


mark = time.perf_counter()
for epoch in range(6):
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        evals.append(0.0)
        walls.append(time.perf_counter() - mark)
        mark = time.perf_counter()
    right = evaluate()
    evals[-1] = time.perf_counter() - mark
    walls[-1] += evals[-1]
    mark = time.perf_counter()
    print(epoch, f"{loss.item():.17g}", right)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"eval": evals, "step": walls}, file)
