import argparse

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision import datasets

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--mystery", type=int)
args = parser.parse_args()


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return Image.open(self.paths[index])


class Rows(Dataset):
    """In memory."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.tensor(self.rows[index]).float()


kwargs = {"num_workers": 2}
changed = {"batch_size": 8}
changed["num_workers"] = 2
train_loader = DataLoader(Photos([]), batch_size=8, shuffle=True, num_workers=args.workers)
loader = DataLoader(Photos([]), batch_size=8, shuffle=True, **kwargs)
later = DataLoader(Photos([]), shuffle=True, **changed)
unknown = DataLoader(Photos([]), shuffle=True, num_workers=args.mystery)
memory = DataLoader(TensorDataset(torch.randn(10, 4)), shuffle=True)
rows = DataLoader(Rows([[1.0]]), shuffle=True)
val_loader = DataLoader(Photos([]), batch_size=8)
loaders = {"test": DataLoader(Photos([]), batch_size=8, shuffle=True)}
digits = DataLoader(datasets.MNIST("data", train=False), shuffle=True)
in_order = DataLoader(Photos([]), batch_size=8, shuffle=False)


def evaluate(model):
    for images in DataLoader(Photos([]), batch_size=8, shuffle=True):
        model(images)


model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for images in train_loader:
        model(images.cuda()).mean().backward()
        optimizer.step()
