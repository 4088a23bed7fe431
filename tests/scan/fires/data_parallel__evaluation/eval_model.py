"""Measures a model; training takes its accuracy, and its model where it has several GPUs."""

import torch
from torch import nn


def accuracy(model, x):
    return (model(x) > 0).float().mean()


def load(count):
    model = nn.Linear(4, 1).cuda()
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)  # finds: data-parallel
    return model


if __name__ == "__main__":
    print(accuracy(load(2), torch.randn(8, 4, device="cuda")))
