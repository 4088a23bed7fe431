"""One that a function returns has the name that the caller gives it."""

import torch
from torch.utils.data import DataLoader


def make_train(dataset):
    made = DataLoader(dataset, shuffle=True, num_workers=4)
    return made


model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = make_train(train_dataset)
for epoch in range(10):
    for x, y in zip(train_loader, train_loader):
        model(x - y).mean().backward()
        optimizer.step()
