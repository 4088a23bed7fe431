import re

import torch
from torch import nn

PATTERN = re.compile("a")
half_body = 0.5
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()).cuda()  # finds: no-autocast
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
