"""A switch in a function that something takes out of a table where it needs it."""

import torch
from torch import nn


def search_no_convolutions():
    torch.backends.cudnn.benchmark = False


def keep_all():
    pass


QUIRKS = {"no-search": search_no_convolutions, "none": keep_all}
QUIRKS["no-search" if torch.version.hip else "none"]()
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 3, 16, 16, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
