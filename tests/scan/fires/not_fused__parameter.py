"""What a parameter is unless it is given says which one is meant."""

import torch


def make(parameters, kind="adam"):
    if kind == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=0.1)
    elif kind == "adam":
        optimizer = torch.optim.Adam(parameters, lr=0.1)  # finds: not-fused
    return optimizer


model, other = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 4).cuda()
optimizer = make(model.parameters())
others_optimizer = make(other.parameters(), "sgd")
for step in range(20):
    loss = other(model(torch.randn(4, 4, device="cuda"))).mean()
    loss.backward()
    optimizer.step()
    others_optimizer.step()
