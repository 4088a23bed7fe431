import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = val_loader = [torch.randn(8, 4) for _ in range(3)]


def validate(model, loader):
    model.eval()
    total = 0
    for x in loader:  # finds: eval-with-grad
        total += model(x).mean().item()
    return total


def train():
    for epoch in range(2):
        model.train()
        for x in train_loader:
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        for x in val_loader:  # finds: eval-with-grad
            print(model(x).mean().item())


train()
validate(model, val_loader)
