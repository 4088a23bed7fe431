"""What a command line's file of settings says of the first epochs."""

import argparse
import json

import torch
from torch import nn


def warm_up(model, optimizer):
    for step in range(20):
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


def train(model, optimizer):
    for step in range(20):
        model(torch.randn(8, 4, device="cuda")).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config")
    config = json.load(open(parser.parse_args().config))
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, 9):
        if epoch <= config["trainer"]["warmup"]:
            warm_up(model, optimizer)
        else:
            train(model, optimizer)
