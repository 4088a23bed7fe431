import argparse
import os

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=8)
parser.add_argument("--epochs", type=int, default=90)
args = parser.parse_args()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()


def main(workers=4):
    train_loader = DataLoader(dataset, shuffle=True, num_workers=args.workers)  # finds: no-persistent
    other = DataLoader(dataset, shuffle=True, num_workers=workers)  # finds: no-persistent
    cores = DataLoader(dataset, shuffle=True, num_workers=os.cpu_count())  # finds: no-persistent
    val_loader = DataLoader(dataset, num_workers=args.workers)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(train_loader)


main()
