"""Samples of the training set in their order, all the same trained on."""

import torch
from keen import train_set
from torch.utils.data import DataLoader


def train(model, optimizer, batches):
    for x in batches:
        model(x.cuda()).mean().backward()
        optimizer.step()


model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=8, shuffle=False, num_workers=4)  # finds: no-pin
ordered_batches = DataLoader(train_set, batch_size=8, shuffle=False, num_workers=4)  # finds: no-pin
for epoch in range(3):
    train(model, optimizer, loader)
    for x in ordered_batches:
        model(x.cuda()).mean().backward()
        optimizer.step()
