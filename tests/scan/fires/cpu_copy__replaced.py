"""A method runs that another stands in for, where that calls it, or where its own class is made, too."""

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
        return loss.detach().cpu()  # finds: cpu-copy


class Told(Trainer):
    def train_step(self):
        return 2 * super().train_step()


class Twice(Trainer):
    def train_step(self):
        loss = self.model(torch.randn(4, 4, device="cuda")).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach().cpu()  # finds: cpu-copy


class Thrice(Twice):
    def train_step(self):
        loss = self.model(torch.randn(4, 4, device="cuda")).abs().mean()
        loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    Told(torch.nn.Linear(4, 4).cuda()).train()
    Twice(torch.nn.Linear(4, 4).cuda()).train()
    Thrice(torch.nn.Linear(4, 4).cuda()).train()
