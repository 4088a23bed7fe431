"""A frozen network in the loss; the loss is timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

features = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()).eval()
for parameter in features.parameters():
    parameter.requires_grad_(False)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.rand(240, 3, 48, 48)), batch_size=4)


def perceptual(output, target):
    with torch.no_grad():
        wanted = features(target)
    return nn.functional.l1_loss(features(output), wanted) + nn.functional.l1_loss(output, target)


losses, seconds = [], []
for (clean,) in loader:
    output = model(clean + 0.1 * torch.randn_like(clean))
    begin = time.perf_counter()
    loss = perceptual(output, clean)
    seconds.append(time.perf_counter() - begin)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"loss": seconds}, file)
