"""What nothing imports, and what only shows when it is run what comes out of a model."""

import torch
from torch import nn


class Model:
    def __init__(self):
        self.net = nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, x):
        self.net(x).square().mean().backward()
        self.optimizer.step()


if __name__ == "__main__":
    print(Model().net(torch.randn(8, 4, device="cuda")).shape)
