"""Every hundredth step, by a call instead of `%`."""

import numpy as np
import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if np.mod(step, 100) == 1:
        print(loss.item())
