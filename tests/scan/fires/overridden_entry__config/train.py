"""A program that knows better than its settings."""

import argparse

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

LOADER = dict(num_workers=2, drop_last=True)  # finds: overridden-entry


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--print-freq", type=int, default=50)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pin-memory", type=bool, default=True)
    return parser.parse_args()


def setup(cfg):
    torch.manual_seed(cfg["seed"])
    torch.backends.cudnn.benchmark = False  # finds: overridden-entry
    if cfg["cudnn_from_config"]:
        torch.backends.cudnn.benchmark = cfg["cudnn_benchmark"]


def main(dataset):
    args = parse()
    args.workers = 0  # finds: overridden-entry
    if args.quick:
        args.print_freq = 1
    with open("config/base.yaml") as file:
        cfg = yaml.safe_load(file)
    cfg["fp16"] = False  # finds: overridden-entry
    setup(cfg)
    loader = DataLoader(dataset, cfg["size"], num_workers=args.workers, pin_memory=False)  # finds: overridden-entry
    if cfg["loader_from_config"]:
        loader = DataLoader(dataset, cfg["size"], num_workers=cfg["num_workers"])
    other = DataLoader(dataset, cfg["size"], **LOADER)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader or other):
        with torch.autocast("cuda", enabled=cfg["fp16"]):
            loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % args.print_freq == 0:
            print(loss.detach())
