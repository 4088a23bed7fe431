"""Intervals and switches that keep `.item()` away from most steps."""

import argparse

import yaml
from torch import nn, optim

FIRST = False


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--print-freq", type=int, default=10)
    parser.add_argument("--config", default="a.yaml")
    parser.add_argument("--interval", type=int)
    parser.add_argument("--track-norm", action="store_true")
    return parser.parse_args()


def main(loader, given):
    args = parse()
    with open(f"configs/{args.config}") as file:
        cfg = yaml.safe_load(file)
    model = nn.Linear(4, 1).cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if step % args.print_freq == 0:
            print(loss.item())
        if step % args.interval == 0:
            print(loss.item())
        if step % cfg["log_every"] == 0:  # 1 in one file, 50 in the other
            print(loss.item())
        if args.track_norm:
            print(loss.item())
        if step % given == 0:
            print(loss.item())
        if FIRST:
            print(loss.item())
