"""A loader that is handed on beside others, and left alone by whoever gets it."""

import torch
from torch.utils.data import DataLoader


def loaders(images, plain):
    train_loader = DataLoader(images, batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
    plain_train_loader = DataLoader(plain, batch_size=8, num_workers=4)
    return train_loader, plain_train_loader, len(images)


model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader, plain_train_loader, count = loaders(list(torch.randn(80, 4)), list(torch.randn(80, 4)))
for epoch in range(3):
    for x in train_loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
print(count)
