"""Gradients dropped instead of zeroed, which torch does by itself since 2.0."""

import torch
from loop import train
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
data = [(torch.randn(64, 256), torch.randn(64, 256)) for _ in range(300)]
train(model, data, torch.optim.SGD(model.parameters(), lr=0.01))
