"""Nothing is wrong: the model's own work fills the step; forward and backward are timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

loader = DataLoader(TensorDataset(torch.randn(160, 3, 40, 40), torch.randint(0, 10, (160,))), batch_size=8, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 24, 3), nn.ReLU(), nn.Conv2d(24, 24, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
forwards, backwards, walls, losses = [], [], [], []
mark = time.perf_counter()
for epoch in range(3):
    for x, y in loader:
        begin = time.perf_counter()
        output = model(x)
        forwards.append(time.perf_counter() - begin)
        loss = criterion(output, y)
        optimizer.zero_grad()
        begin = time.perf_counter()
        loss.backward()
        backwards.append(time.perf_counter() - begin)
        optimizer.step()
        losses.append(loss.item())
        walls.append(time.perf_counter() - mark)
        mark = time.perf_counter()
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"forward": forwards, "backward": backwards, "step": walls}, file)
