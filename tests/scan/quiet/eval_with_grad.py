import torch
from torch import nn

model, teacher = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = val_loader = [torch.randn(8, 4) for _ in range(3)]


@torch.no_grad()
def decorated(model, loader):
    model.eval()
    for x in loader:
        print(model(x).mean())


def inside(model, loader):
    model.eval()
    for x in loader:
        with torch.no_grad():
            print(model(x).mean())


def called_under(model, loader):
    model.eval()
    for x in loader:
        print(model(x).mean())


def attack(model, loader):
    model.eval()
    for x in loader:
        x.requires_grad = True
        print(model(x).mean(), x.grad)


def train():
    teacher.eval()
    for x in train_loader:
        (model(x) - teacher(x).detach()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    model.train()
    for x in train_loader:
        model(x)


def main():
    train()
    decorated(model, val_loader)
    inside(model, val_loader)
    with torch.inference_mode():
        called_under(model, val_loader)
    attack(model, val_loader)


main()
