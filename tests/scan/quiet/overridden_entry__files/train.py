"""Settings that are changed for a reason, or not at all."""

import argparse
import copy

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--compile", type=bool, default=True)
    return parser.parse_args()


def defaults():
    cfg = argparse.Namespace()
    cfg.workers = 2
    cfg.fp16 = False
    return cfg


def validate(model, dataset, args):
    args.batch_size = 1
    return [model(x) for x, _ in DataLoader(dataset, batch_size=1, num_workers=args.workers)]


def main(dataset, held_out):
    args = parse()
    if args.debug:
        args.workers = 0
    args.lr = args.lr * args.batch_size / 256
    args.compile = True
    eval_args = copy.copy(args)
    eval_args.batch_size = 1
    with open("config/base.yaml") as file:
        cfg = yaml.safe_load(file)
    torch.backends.cudnn.benchmark = True
    if args.deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    model = torch.compile(nn.Linear(4, 1)) if args.compile else nn.Linear(4, 1)
    loader = DataLoader(dataset, args.batch_size, num_workers=args.workers, pin_memory=cfg["pin_memory"])
    scaler = torch.amp.GradScaler(enabled=args.amp)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
    return validate(model, held_out, eval_args), DataLoader(held_out, batch_size=1, pin_memory=False), cfg["benchmark"]
