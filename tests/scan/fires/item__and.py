"""`a and b` where `a` is true by default, or not known."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, schedule=None, keeps=True):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.schedule, self.keeps = schedule, keeps
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x):
        if self.keeps and self.count.item() > 0:  # finds: item
            x = x * 2
        if x.shape[0] > 1 and self.count.item() > 0:  # finds: item
            x = x * 2
        return self.layer(x)


model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device="cuda")).mean().backward()
    optimizer.step()
