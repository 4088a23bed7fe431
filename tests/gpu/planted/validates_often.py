"""An image classifier that goes over all held-out images every twenty steps."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH = 128 if DEVICE == "cuda" else 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, WIDTH, 3, padding=1), nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(2 * WIDTH, 10)

    def forward(self, images):
        return self.head(self.layers(images))


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.net = Net().to(DEVICE)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, fused=True)
        images, labels = torch.rand(4096, 3, 32, 32), torch.randint(10, (4096,))
        self.train_loader = DataLoader(
            TensorDataset(images, labels), batch_size=128, shuffle=True, num_workers=4, persistent_workers=True
        )
        self.held_out = DataLoader(TensorDataset(images[:2048], labels[:2048]), batch_size=128)

    def validate(self):
        self.net.eval()
        right = 0
        with torch.no_grad():
            for images, labels in self.held_out:
                right += (self.net(images.to(DEVICE)).argmax(dim=1) == labels.to(DEVICE)).sum().item()
        self.net.train()
        return right / len(self.held_out.dataset)

    def fit(self):
        end, step = time.perf_counter() + SECONDS, 0
        while True:
            for images, labels in self.train_loader:
                loss = F.cross_entropy(self.net(images.to(DEVICE)), labels.to(DEVICE))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                step += 1
                if step % 20 == 0:
                    accuracy = self.validate()
                if time.perf_counter() > end:
                    return accuracy


print("accuracy", Trainer().fit())
