"""A switch that waits for a parameter, of which nothing says what it is given."""

import json

import torch
from torch import nn


class Runner:
    def __init__(self, randomness):
        self.set_randomness(**randomness)

    def set_randomness(self, seed, deterministic=False):
        set_seed(seed, deterministic=deterministic)


def set_seed(seed, deterministic=False):
    torch.manual_seed(seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True


with open("runner.json") as file:
    runner = Runner(json.load(file))
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
