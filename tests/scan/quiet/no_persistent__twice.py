"""Workers that are kept belong to one iterator: whoever goes through a loader twice at once gets half of it."""

import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

train_loader = DataLoader(train_dataset, shuffle=True, num_workers=4)
other_train_loader = DataLoader(other_dataset, shuffle=True, num_workers=4)
for epoch in range(10):
    for i, (x, y) in enumerate(zip(train_loader, train_loader)):
        model(x - y).mean().backward()
        optimizer.step()
    for x in other_train_loader:
        y = next(iter(other_train_loader))
        model(x - y).mean().backward()
        optimizer.step()
