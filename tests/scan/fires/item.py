import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def report(loss):
    return f"{loss.item():.3f}"  # finds: item


def train_one(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


total = 0.0
for step in range(20):
    loss = train_one(torch.randn(8, 4), torch.randn(8, 1))
    total += loss.item()  # finds: item
    text = report(loss)
