"""The first step makes another optimizer: the model has more parameters then."""

import torch
from torch import nn

model = nn.LazyLinear(1).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(200):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    if step == 0:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # finds: not-fused
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
