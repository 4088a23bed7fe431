import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--num-workers", type=int, default=8)
args = parser.parse_args()

train_loader = DataLoader(dataset, shuffle=True, num_workers=4)  # finds: fixed-workers
val_loader = DataLoader(dataset, num_workers=4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x).mean().backward()
    optimizer.step()
