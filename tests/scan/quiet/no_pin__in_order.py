"""Samples of the training set in their order, in a loader named after what it is for, are measured."""

import torch
from torch.utils.data import DataLoader


def fisher(model, batches):
    return sum(model(x.cuda()).square().sum() for x in batches)


train_set = list(torch.randn(80, 4))
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
for epoch in range(3):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
    memorable_loader = DataLoader(train_set, batch_size=6, shuffle=False, num_workers=3)
    model.fisher = fisher(model, memorable_loader)
