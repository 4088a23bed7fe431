import gc

import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def tidy():
    gc.collect()
    torch.cuda.empty_cache()  # finds: empty-cache


for step in range(20):
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    tidy()
    torch.cuda.empty_cache()  # finds: empty-cache
