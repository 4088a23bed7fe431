"""What a file does with its class when it is run trains."""

import torch
from torch import nn


class Wrapped:
    def __init__(self, optimizer):
        self.optimizer = optimizer


def train(wrapped, model):
    optimizer = wrapped.optimizer
    for step in range(20):
        model(torch.randn(8, 4, device="cuda")).square().mean().backward()
        optimizer.step()


def main():
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # finds: not-fused
    train(Wrapped(optimizer), model)


if __name__ == "__main__":
    main()
