"""A program that only says that several GPUs might be shared out."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    count = torch.cuda.device_count()
    if count > 1 and not args.distributed:
        print("one process for each GPU is faster")
    model = nn.DataParallel(nn.Linear(4, 1)).cuda()  # finds: data-parallel
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        model(torch.randn(8, 4, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
