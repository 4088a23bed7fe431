"""A program that reads most of its settings, and forgot some."""

import argparse

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="configs/base.yaml")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", action="store_true", help="mixed precision")  # finds: unread-entry
    parser.add_argument("--print-freq", type=int, default=50)  # finds: unread-entry
    parser.add_argument("--checkpoint")
    parser.add_argument("--lr", type=float, default=0.1)
    return parser.parse_args()


def load(path):
    with open(path) as file:
        return yaml.safe_load(file)


def build_loader(cfg):
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    return DataLoader(data, batch_size=cfg["batch_size"], num_workers=2, shuffle=cfg.get("shuffle", True))


def main():
    args = parse()
    cfg = load(args.config)
    print(f"training with {cfg}, seed {args.seed}, amp or not")
    torch.manual_seed(args.seed)
    model = nn.Linear(4, cfg["model"]["outputs"])
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=cfg["optim"]["momentum"])
    for _ in range(cfg["epochs"]):
        for x, y in build_loader(cfg["data"]):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save({"model": model.state_dict(), "config": cfg}, args.checkpoint)


main()
