"""A function that is neither called nor handed to anything by default."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--search", default=False)
args = parser.parse_args()


def fit(model, optimizer, rate):
    loss = model(torch.randn(8, 4, device="cuda")).mean() * rate
    loss.backward()
    optimizer.step()
    return loss


def search(rank):
    model = torch.nn.Linear(4, 1).cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        print(fit(model, optimizer, step).item())


def work(rank):
    model = torch.nn.Linear(4, 1).cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        fit(model, optimizer, 1)


if args.search:
    search(0)
    torch.multiprocessing.spawn(search, nprocs=4)
else:
    work(0)
