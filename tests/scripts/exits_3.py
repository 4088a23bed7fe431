"""Ends by sys.exit(3) in the middle of an epoch."""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

loader = DataLoader(TensorDataset(torch.randn(9600, 256), torch.randn(9600, 1)), batch_size=80)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.17g}", flush=True)
    if step == 99:
        sys.exit(3)
