"""What a branch reads in every step in which a value is negative, which it does not change."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.sizes, self.scale = [-1.0, -1.0], -1

    def forward(self, x):
        size = self.sizes[0]
        if size < 0:
            self.sizes[1] = x.std()
            size = self.sizes[1].item()  # finds: item
        if self.scale == -1:
            size = x.std().item()  # finds: item
        return self.body(x) * size


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
