"""Loaders that are handed on beside others, and gone through."""

import torch
from keen import images, plain
from torch.utils.data import DataLoader


def loaders(images, plain):
    train_loader = DataLoader(images, batch_size=8, shuffle=True, num_workers=4)  # finds: no-pin
    plain_train_loader = DataLoader(plain, batch_size=8, num_workers=4)  # finds: no-pin
    return train_loader, plain_train_loader, len(images)


model = torch.nn.Linear(4, 1)
model.to("cuda" if torch.cuda.is_available() else "cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader, plain_train_loader, count = loaders(images, plain)
for epoch in range(1):
    for batches in (train_loader, plain_train_loader):
        for x in batches:
            loss = model(x.to(model.weight.device)).mean()
            loss.backward()
            optimizer.step()
print(count)
