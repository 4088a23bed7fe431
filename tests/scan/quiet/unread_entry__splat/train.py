"""A section that is handed over whole is read by whoever takes it."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, dataset, **more):
        self.loader = DataLoader(dataset, **more)

    def train(self, model, lr, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for _ in range(epochs):
            for x in self.loader:
                model(x).mean().backward()
                optimizer.step()


with open("configs/base.json") as file:
    said = json.load(file)
assert "batch_size" in said["loader"]
trainer = Trainer([torch.zeros(4)], **said["loader"])
trainer.train(nn.Linear(4, 1), said["lr"], said["epochs"])
