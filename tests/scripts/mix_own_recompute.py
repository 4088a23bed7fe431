"""Counts in Python what it has seen after each step, which takes most; and checkpoints every block, which takes less."""
import bisect

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return x + self.conv2(torch.relu(self.norm(self.conv1(x))))


class Net(nn.Module):
    def __init__(self, channels=16, blocks=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList([Block(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x.mean((2, 3)))


class Quantiles:
    """How often values fell between borders."""

    def __init__(self):
        self.borders = [b / 50 for b in range(-150, 151)]
        self.counts, self.sums = [0] * 302, [0.0] * 302
        self.least, self.most = [0.0] * 302, [0.0] * 302

    def add(self, values):
        for value in values:
            place = bisect.bisect(self.borders, value)
            self.counts[place] += 1
            self.sums[place] += value
            self.least[place] = min(self.least[place], value)
            self.most[place] = max(self.most[place], value)
        return max(range(302), key=self.counts.__getitem__)


def main(steps=60, batch=8):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, quantiles = Net(), Quantiles()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(steps):
        pictures = torch.randn(batch, 3, 32, 32)
        logits = net(pictures)
        loss = nn.functional.cross_entropy(logits, torch.arange(batch) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        middle = quantiles.add(pictures.flatten().tolist())
    print(loss.item(), middle)


if __name__ == "__main__":
    main()
