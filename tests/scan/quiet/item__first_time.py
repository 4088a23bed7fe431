"""What a flag, which its own branch sets, lets through once."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.checked, self.is_first, self.scale = False, True, None

    def forward(self, x):
        if not self.checked:
            self.checked = True
            print(x.abs().max().item())
        if self.is_first:
            print(x.std().item())
            self.is_first = False
        if self.scale is None:
            self.scale = x.std().item()
        return self.body(x) * self.scale


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
