"""Weights that were saved of such a model are loaded into one, of which only a part is kept."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, path):
        super().__init__()
        saved = nn.DataParallel(nn.Conv2d(3, 8, 3))
        saved.load_state_dict(torch.load(path))
        self.first = saved.module

    def forward(self, x):
        return self.first(x)


model = Net("saved.pt").cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 3, 32, 32, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
