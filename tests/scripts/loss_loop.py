"""A loss that is a plain class and loops over the batch in Python; timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Assignment:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, output, target):
        with torch.no_grad():
            chosen = [self.match(o, t) for o, t in zip(output, target)]
        return nn.functional.cross_entropy(output, torch.tensor(chosen)) * self.weight

    def match(self, output, target):
        best, cost = 0, float("inf")
        for i, score in enumerate(output.tolist()):
            for value in target.tolist():
                if abs(score - value) < cost:
                    best, cost = i, abs(score - value)
        return best


loader = DataLoader(TensorDataset(torch.randn(2160, 128), torch.randn(2160, 64)), batch_size=12)
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.Adam(model.parameters())
compute_loss = Assignment(0.5)
losses, seconds, forwards = [], [], []
for x, y in loader:
    begin = time.perf_counter()
    output = model(x)
    middle = time.perf_counter()
    loss = compute_loss(output, y)
    seconds.append(time.perf_counter() - middle)
    forwards.append(middle - begin)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"loss": seconds}, file)
