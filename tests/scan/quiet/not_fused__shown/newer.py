import torch
from torch import nn


class Model:
    def __init__(self):
        self.net = nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, fused=True)

    def update(self, x):
        self.net(x).square().mean().backward()
        self.optimizer.step()
