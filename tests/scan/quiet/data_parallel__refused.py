"""A program that ends where there are several GPUs and they are not shared out."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    count = torch.cuda.device_count()
    if count > 1 and not args.distributed:
        print("start one process for each GPU")
        return
    model = nn.DataParallel(nn.Linear(4, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        model(torch.randn(8, 4, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
