import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

train_loader = DataLoader(dataset, shuffle=True, num_workers=4)
for epoch in range(args.epochs):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
