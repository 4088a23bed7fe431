import re

import torch
from torch import nn

NUMBER = re.compile("[0-9]+")
model = nn.Conv2d(3, 8, 3)
model.to("cuda")  # finds: no-compile
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
