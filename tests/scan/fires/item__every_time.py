"""Flags that are set elsewhere, or to what keeps the branch open; and a loss named after a search."""

import torch
from torch import nn


class ViterbiLoss(nn.Module):
    def forward(self, scores):
        self.last = scores.mean().item()  # finds: item
        return scores.square().mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.is_warm, self.is_open = False, False

    def forward(self, x):
        if not self.is_warm:
            self.top = x.abs().max().item()  # finds: item
        if not self.is_open:
            self.is_open = False
            self.low = x.min().item()  # finds: item
        return self.body(x)


model = Net().cuda()
criterion = ViterbiLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
worst = 0.0
for step in range(20):
    loss = criterion(model(torch.randn(8, 4, device="cuda")))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loss.item() > worst:  # finds: item
        worst = loss.item()
    if step > 5:
        worst = loss.item()  # finds: item
