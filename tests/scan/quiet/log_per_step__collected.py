"""Hundreds of steps on what was collected before, and then a line."""

import torch

optim_epochs, optim_batches = 10, 32
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def update(collected):
    for _ in range(optim_epochs):
        for number in range(optim_batches):
            loss = model(collected[number]).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return float(loss)


for round in range(20):
    loss = update(torch.randn(optim_batches, 8, 4))
    print("loss", loss)
