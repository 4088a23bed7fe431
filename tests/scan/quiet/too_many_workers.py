import os

import torch
from torch.utils.data import DataLoader

train_loader = DataLoader(dataset, shuffle=True, num_workers=8)
a = DataLoader(dataset, shuffle=True, num_workers=min(os.cpu_count(), 8))
b = DataLoader(dataset, shuffle=True, num_workers=os.cpu_count() // 2)
val_loader = DataLoader(dataset, num_workers=os.cpu_count())

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x).mean().backward()
    optimizer.step()
