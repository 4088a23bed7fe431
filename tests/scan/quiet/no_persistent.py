import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=8)
parser.add_argument("--few", type=int, default=0)
parser.add_argument("--epochs", type=int, default=90)
args = parser.parse_args()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

train_loader = DataLoader(dataset, shuffle=True, num_workers=args.workers, persistent_workers=True)
other = DataLoader(dataset, shuffle=True, num_workers=args.workers, persistent_workers=args.workers > 0)
none = DataLoader(dataset, shuffle=True, num_workers=args.few)
val_loader = DataLoader(dataset, num_workers=4)
for epoch in range(args.epochs):
    remade = DataLoader(dataset, shuffle=True, num_workers=args.workers)
    for x in remade:
        model(x).mean().backward()
        optimizer.step()
