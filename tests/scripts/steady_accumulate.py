"""Gradient accumulation in a trainer class; nothing but the model takes time."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    micro_batch: int = 16
    accumulate: int = 4
    epochs: int = 2
    lr: float = 1e-3


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv1d(channels, channels, 5, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 5, padding=2)

    def forward(self, x):
        return x + self.conv2(torch.relu(self.conv1(torch.relu(x))))


class Trainer:
    def __init__(self, model, dataset, config):
        self.model, self.config = model, config
        self.loader = DataLoader(dataset, batch_size=config.micro_batch, shuffle=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
        self.criterion = nn.MSELoss()

    def micro_step(self, x, y):
        loss = self.criterion(self.model(x), y) / self.config.accumulate
        loss.backward()
        return loss.detach()

    def fit(self):
        for epoch in range(self.config.epochs):
            running = torch.zeros(())
            for number, (x, y) in enumerate(self.loader, 1):
                running += self.micro_step(x, y)
                if number % self.config.accumulate == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            print("epoch", epoch, running.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    signals = torch.randn(640, 4, 200)
    net = nn.Sequential(nn.Conv1d(4, 32, 7, padding=3), Residual(32), Residual(32), nn.Conv1d(32, 1, 1))
    Trainer(net, TensorDataset(signals, signals.cumsum(-1).mean(1, keepdim=True)), Config()).fit()
