"""A function that is handed to something by default, and called otherwise."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", default=True)
args = parser.parse_args()


def work(rank):
    model = torch.nn.Linear(4, 1).cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        loss = model(torch.randn(8, 4, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())  # finds: item


if args.distributed:
    torch.multiprocessing.spawn(work, nprocs=4)
else:
    work(0)
