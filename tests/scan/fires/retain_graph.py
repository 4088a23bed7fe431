import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)  # finds: retain-graph
        self.optimizer.step()
        return loss.detach()


trainer = Trainer()
for step in range(5):
    trainer.step(torch.randn(8, 4))
