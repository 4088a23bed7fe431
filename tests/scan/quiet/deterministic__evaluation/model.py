import torch
from torch import nn


def make():
    return nn.Conv2d(3, 8, 3).cuda()


def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        model(batch.cuda()).mean().backward()
        optimizer.step()
