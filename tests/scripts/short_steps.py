"""Many short steps, all alike, but for evaluation and a pass over the data that is left early; timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

data = TensorDataset(torch.randn(8000, 256), torch.randn(8000, 256))
loader = DataLoader(data, batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(torch.randn(160, 256)), batch_size=16)
model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.ReLU())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def distance(output, target):
    total = torch.zeros(())
    for shift in range(12):
        total = total + (output - target.roll(shift, 1)).square().mean()
    return total


forwards, losses, backwards, walls, values = [], [], [], [], []
mark = time.perf_counter()
for epoch in range(3):
    for number, (x, y) in enumerate(loader):
        if number == 450:
            break
        begin = time.perf_counter()
        output = model(x)
        called = time.perf_counter()
        loss = distance(output, y)
        known = time.perf_counter()
        loss.backward()
        done = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad()
        values.append(loss.item())
        forwards.append(called - begin)
        losses.append(known - called)
        backwards.append(done - known)
        walls.append(time.perf_counter() - mark)
        mark = time.perf_counter()
    with torch.no_grad():
        for (x,) in held_out:
            model(x)
    mark = time.perf_counter()
print(values[-1], sum(values))
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"forward": forwards, "loss": losses, "backward": backwards, "step": walls}, file)
