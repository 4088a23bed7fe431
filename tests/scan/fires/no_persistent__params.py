"""Where there is a GPU the loader is given workers."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Pictures

use_cuda = torch.cuda.is_available()
params = {"num_workers": 4, "pin_memory": True} if use_cuda else {}
train_loader = DataLoader(Pictures(), shuffle=True, **params)  # finds: no-persistent
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
