"""What is handed to something that trains it, when its file is run."""

import torch
from keen import Runner
from torch import nn


class Model:
    def __init__(self):
        self.net = nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)  # finds: not-fused

    def update(self, x):
        self.net(x).square().mean().backward()
        self.optimizer.step()


def main():
    Runner(Model()).fit(torch.randn(8, 4, device="cuda"))


if __name__ == "__main__":
    main()
