import multiprocessing
import os

import torch
from torch.utils.data import DataLoader

WORKERS = 2 * os.cpu_count()
train_loader = DataLoader(dataset, shuffle=True, num_workers=32)  # finds: too-many-workers
a = DataLoader(dataset, shuffle=True, num_workers=multiprocessing.cpu_count())  # finds: too-many-workers
b = DataLoader(dataset, shuffle=True, num_workers=WORKERS)  # finds: too-many-workers
settings = dict(num_workers=os.cpu_count(), pin_memory=True)
c = DataLoader(dataset, shuffle=True, **settings)  # finds: too-many-workers
val_loader = DataLoader(dataset, num_workers=32)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x).mean().backward()
    optimizer.step()
