"""Which one is meant is what is fallen back on."""

import torch


class Trainer:
    def __init__(self, model, config):
        self.model, self.kind = model, "sgd"
        self.optimizer = self.make(model.parameters(), **config)

    def make(self, parameters, **more):
        kind = more.pop("kind", self.kind)
        if kind.lower() == "adam":
            optimizer = torch.optim.Adam(parameters, lr=0.1)
        elif kind.lower() == "sgd":
            optimizer = torch.optim.SGD(parameters, lr=0.1)  # finds: not-fused
        return optimizer

    def train(self):
        for step in range(20):
            loss = self.model(torch.randn(4, 4, device="cuda")).mean()
            loss.backward()
            self.optimizer.step()


Trainer(torch.nn.Linear(4, 4).cuda(), {}).train()
