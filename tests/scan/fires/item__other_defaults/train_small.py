"""One of two programs, each with a model of its own; this one's is dense."""

import argparse

from models import make, train

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="dense", choices=("dense", "wide", "deep"))
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    train(make(args), args.device)
