"""The evaluation adds noise to its pictures."""

import torch
from torch import nn

from data import test_loader, train_loader


def disturb(model, x):
    return x + 0.1 * torch.randn_like(x)


model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for x in train_loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
    model.eval()
    for x in test_loader:  # finds: eval-with-grad
        print(model(disturb(model, x.cuda())).mean())
