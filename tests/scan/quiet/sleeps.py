import time

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
time.sleep(1)
for epoch in range(2):
    for step in range(4):
        while not ready():
            time.sleep(0.1)
        try:
            model(torch.randn(8, 4)).mean().backward()
        except RuntimeError:
            time.sleep(1)
        optimizer.step()
        if step % 100 == 0:
            time.sleep(1)
    time.sleep(1)
