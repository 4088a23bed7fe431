"""A small network of repeated blocks that allows itself some GiB of the GPU: launches take the time at batches of 16."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--gib", type=float, default=6.0)
args = parser.parse_args()
torch.manual_seed(0)
device = torch.device("cuda")
total = torch.cuda.get_device_properties(0).total_memory / 2**30
torch.cuda.set_per_process_memory_fraction(args.gib / total)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(torch.relu(x))))


blocks = [Block(64) for _ in range(12)]
head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *blocks, *head).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
data = TensorDataset(torch.randn(16384, 3, 32, 32), torch.randint(0, 10, (16384,)))
for _ in range(200):
    for x, y in DataLoader(data, batch_size=args.batch_size, shuffle=True, pin_memory=True):
        loss = nn.functional.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
