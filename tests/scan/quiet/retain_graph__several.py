"""Losses that share a graph, one after the other; and an optimizer that goes backward itself."""

import torch
from torch import nn


class Meta(torch.optim.SGD):
    def step(self, losses):
        for number, loss in enumerate(losses):
            loss.backward(retain_graph=True)
            super().step()


class Two:
    def update(self, model, optimizer, alpha):
        out = model(torch.randn(8, 4))
        penalty = out.square().mean() * alpha
        penalty.backward(retain_graph=True)
        critic_loss = out.mean() + penalty
        optimizer.step(critic_loss)


model = nn.Linear(4, 1)
optimizer = Meta(model.parameters(), lr=0.1)
two = Two()
for step in range(5):
    out = model(torch.randn(8, 4))
    optimizer.step([out.mean(), out.square().mean()])
    two.update(model, optimizer, 0.5)
