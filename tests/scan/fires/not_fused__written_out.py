"""Which one is meant is written out where it is made, whatever else is given there."""

import torch


def make(parameters, name, lr=0.1):
    if name == "adam":
        optimizer = torch.optim.Adam(parameters, lr=lr)
    elif name == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=lr)  # finds: not-fused
    return optimizer


model = torch.nn.Linear(4, 4).cuda()
optimizer = make(model.parameters(), "sgd", **{"lr": 0.2})
for step in range(20):
    loss = model(torch.randn(4, 4, device="cuda")).mean()
    loss.backward()
    optimizer.step()
