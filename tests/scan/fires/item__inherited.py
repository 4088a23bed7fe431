"""Whichever of two agents it is, `learn` takes a step; one of them by what it inherits."""

import sys

import torch
from torch import nn


class Agent:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def learn(self, x):
        raise NotImplementedError


class Plain(Agent):
    def learn(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class Scaled(Plain):
    def learn(self, x):
        return super().learn(x * 2)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
agent = {"plain": Plain, "scaled": Scaled}[sys.argv[1]](nn.Linear(4, 1).to(device))
for step in range(20):
    loss = agent.learn(torch.randn(8, 4, device=device))
    total = loss.item()  # finds: item
