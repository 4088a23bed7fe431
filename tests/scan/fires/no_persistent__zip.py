"""Two loaders at the same time, and one again and again, each have workers of their own."""

import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

train_loader = DataLoader(train_dataset, shuffle=True, num_workers=4)  # finds: no-persistent
other_train_loader = DataLoader(other_dataset, shuffle=True, num_workers=4)  # finds: no-persistent
others = iter(other_train_loader)
for epoch in range(10):
    for i, (x, y) in enumerate(zip(train_loader, range(100))):
        try:
            z = next(others)
        except StopIteration:
            others = iter(other_train_loader)
            z = next(others)
        print(len(train_loader))
        model(x - z).mean().backward()
        optimizer.step()
    for x, z in zip(train_loader, other_train_loader):
        model(x - z).mean().backward()
        optimizer.step()
    for x, z in zip(self.one.train_loader, self.other.train_loader):
        model(x - z).mean().backward()
        optimizer.step()
