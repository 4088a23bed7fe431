"""Compiling two small layers whose batches all differ in length: what a compiled call costs is more than it saves."""

import random

import torch
from loop import BY_HAND, train
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
lengths = random.Random(0)
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1))
data = []
for _ in range(4000):
    rows = lengths.randrange(2, 40)
    data.append((torch.randn(rows, 64), torch.randn(rows, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
train(torch.compile(model) if BY_HAND else model, data, optimizer)
