import time

import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
device = "cuda" if torch.cuda.is_available() else "cpu"


def clock():
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # finds: synchronize
    return time.time()


for step in range(20):
    began = clock()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if device != "cpu":
        torch.cuda.synchronize()  # finds: synchronize
    took = time.time() - began
