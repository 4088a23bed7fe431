"""Options that one types to train switch nothing off."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--do_train", action="store_true")
parser.add_argument("--do-explain", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(name):
    for step in range(20):
        loss = model(torch.randn(4, 4, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        print(name, loss.item())  # finds: item


def explain():
    for step in range(20):
        loss = model(torch.randn(4, 4, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


if args.do_train:
    train("one")
if args.do_explain:
    explain()
