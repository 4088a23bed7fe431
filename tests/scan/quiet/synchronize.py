import time

import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def measured(function):
    """A decorator that is applied to nothing."""

    def inner(*given):
        torch.cuda.synchronize()
        began = time.time()
        result = function(*given)
        torch.cuda.synchronize()
        print(time.time() - began)
        return result

    return inner


def benchmark():
    torch.cuda.synchronize()
    for _ in range(10):
        model(torch.randn(8, 4))
    torch.cuda.synchronize()


for epoch in range(2):
    for step in range(20):
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0 and torch.cuda.is_available():
            torch.cuda.synchronize()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
