"""Point clouds, one a step, through a deep network of small layers."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))


class Clouds(Dataset):
    def __init__(self, count=4000, points=256):
        generator = torch.Generator().manual_seed(0)
        self.points = torch.randn(count, points, 3, generator=generator)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index], index % 10


class PointNet(nn.Module):
    def __init__(self, width=96, depth=32):
        super().__init__()
        self.first = nn.Linear(3, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        for layer, norm in zip(self.layers, self.norms):
            x = x + F.relu(layer(norm(x)))
        return self.head(x.amax(dim=1))


def train():
    torch.manual_seed(1)
    model = PointNet().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    clouds = DataLoader(Clouds(), shuffle=True)
    end = time.perf_counter() + SECONDS
    while True:
        for points, label in clouds:
            loss = F.cross_entropy(model(points.to(DEVICE)), label.to(DEVICE))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if time.perf_counter() > end:
                return loss.item()


print("loss", train())
