"""A library is given the settings as a whole, and reads what it likes."""

import argparse

import yaml
from somewhere import fit, prepare


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    with open("configs/base.yaml") as file:
        cfg = yaml.safe_load(file)
    prepare(args, args.seed, args.out)
    model, optimizer, loader = fit(cfg, cfg["epochs"], cfg["model"])
    for x, y in loader:
        model(x, y).backward()
        optimizer.step()


main()
