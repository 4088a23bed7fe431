"""Small training programs that never end, of four kinds, with an argument that none of them reads."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("kind", choices=["compute", "threads", "loader", "uneven"])
parser.add_argument("--unread")
given = parser.parse_args()


class Made(Dataset):
    """Samples that take some work each."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        drawn = torch.Generator().manual_seed(index)
        made = torch.randn(96, 96, generator=drawn)
        return (made @ made).mean(0), made[0, :1]


torch.manual_seed(0)
if given.kind != "threads":
    torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(96, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Made(), batch_size=64, shuffle=True, num_workers=2 if given.kind == "loader" else 0)
fixed = [(torch.randn(256, 96), torch.randn(256, 1)) for _ in range(64)]
while True:
    for number, (x, y) in enumerate(loader if given.kind == "loader" else fixed):
        repeats = 1 + number % 4 if given.kind == "uneven" else 2
        loss = sum((model(x) - y).square().mean() for _ in range(repeats))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
