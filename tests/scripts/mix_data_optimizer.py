"""Augments point clouds in Python, which takes most; its optimizer walks through a large table, which takes less."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def rotate(points, angle):
    c, s = math.cos(angle), math.sin(angle)
    return [[c * x - s * y, s * x + c * y, z] for x, y, z in points]


def jitter(points, amount):
    moved = []
    for x, y, z in points:
        wave = sum(math.sin(frequency * x) * math.cos(frequency * y) for frequency in (3, 7, 11))
        moved.append([x + amount * wave, y - amount * wave, z + amount * wave])
    return moved


class Clouds(Dataset):
    def __init__(self, count, points):
        self.clouds = torch.rand(count, points, 3, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.clouds)

    def __getitem__(self, index):
        points = self.clouds[index].tolist()
        for turn in range(3):
            points = jitter(rotate(points, 0.1 * index + turn), 0.01)
        return torch.tensor(points), index


class PointNet(nn.Module):
    """Each cloud has a learned code of its own."""

    def __init__(self, codes, width=24):
        super().__init__()
        self.codes = nn.Embedding(codes, width)
        self.each = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.out = nn.Linear(width, 1)

    def forward(self, points, index):
        return self.out(self.each(points).amax(1) + self.codes(index))


class Loop:
    def __init__(self, model, loader, optimizer):
        self.model, self.loader, self.optimizer = model, loader, optimizer

    def step(self, points, index):
        self.optimizer.zero_grad()
        loss = self.model(points, index).sub((index % 2).float()[:, None]).abs().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def __call__(self):
        for points, index in self.loader:
            loss = self.step(points, index)
        return loss.item()


torch.manual_seed(0)
torch.set_num_threads(1)
net = PointNet(codes=8000)
print(Loop(net, DataLoader(Clouds(480, 150), batch_size=8), torch.optim.Adam(net.parameters(), lr=1e-3))())
