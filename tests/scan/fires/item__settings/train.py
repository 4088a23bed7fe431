"""Intervals that are 1 unless somebody says otherwise."""

import argparse

import yaml
from torch import nn, optim


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--print-freq", type=int, default=1)
    parser.add_argument("--verbose", action="store_false", dest="show")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main(loader):
    args = parse()
    with open("config/base.yaml") as file:
        cfg = yaml.safe_load(file)
    every = cfg["log"]["every"]
    model = nn.Linear(4, 1).cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if step % args.print_freq == 0:
            print(loss.item())  # finds: item
        if not step % every:
            print(loss.item())  # finds: item
        if (step + 1) % cfg["plot_every"] != 0:
            continue
        if args.show:
            print(loss.item())  # finds: item
        if args.quiet:
            continue
        if cfg["debug"]:
            print(loss.item())  # finds: item
