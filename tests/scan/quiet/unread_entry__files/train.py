"""Every setting is read, each in another way; and some files are read by others."""

import argparse
from types import SimpleNamespace

import torch
import yaml
from library import instantiate
from torch import nn
from torch.utils.data import DataLoader


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="conf/base.yaml")
    parser.add_argument("--deepspeed", default="conf/deepspeed.json")
    parser.add_argument("--amp", action="store_true", help="no longer used")
    parser.add_argument("--hidden-size", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=3)
    parser.add_argument("--workers", type=int, default=3)
    return parser.parse_args()


def make_loader(dataset, batch_size, num_workers=0, pin_memory=False):
    return DataLoader(dataset, batch_size=batch_size, num_workers=num_workers, pin_memory=pin_memory)


def main(dataset):
    args = parse()
    with open(args.config) as file:
        cfg = yaml.safe_load(file)
    opt = SimpleNamespace(**cfg["train"])
    loader = make_loader(dataset, **cfg["data"])
    other = instantiate(cfg["sampler"], args.hidden_size, args.workers)
    extra = DataLoader(dataset, args.batch_size, **cfg["validation_loader"])
    model = torch.compile(nn.Linear(4, 1)) if getattr(opt, "compile", False) else nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr)
    for _ in range(opt.epochs):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if step % cfg["log"]["interval"] == 0:
                print("loss {loss} lr {base_lr}".format(loss=loss.detach(), **cfg["log"]))
    return other, extra, args.deepspeed
