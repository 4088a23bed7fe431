"""A loader that is made again in every epoch after the first: its workers go with it."""

import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(train_dataset, shuffle=False, num_workers=4)
for epoch in range(90):
    if epoch > 0:
        train_loader = DataLoader(train_dataset, shuffle=True, num_workers=4)
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
