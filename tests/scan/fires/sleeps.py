import time

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
    time.sleep(0.003)  # finds: sleeps
