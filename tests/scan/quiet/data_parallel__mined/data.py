import torch


def get_train_dataset():
    return torch.randn(100, 8, 4)


def fit(model, x, optimizer):
    for step in range(20):
        model(x).square().mean().backward()
        optimizer.step()
