"""A method never runs that each class has another for which inherits from its own, the only ones that are made."""

import torch


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(self):
        for step in range(100):
            self.train_step()

    def train_step(self):
        loss = self.model(torch.randn(4, 4, device="cuda")).mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach().cpu()


class Plain(Trainer):
    def train_step(self):
        loss = self.model(torch.randn(4, 4, device="cuda")).square().mean()
        loss.backward()
        self.optimizer.step()


class Absolute(Trainer):
    def train_step(self):
        loss = self.model(torch.randn(4, 4, device="cuda")).abs().mean()
        loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    Plain(torch.nn.Linear(4, 4).cuda()).train()
    Absolute(torch.nn.Linear(4, 4).cuda()).train()
