"""Whoever trains says so, whatever the default is."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="test")
args = parser.parse_args()

model = torch.nn.Linear(4, 1).cuda()
if args.mode == "train":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        loss = model(torch.randn(8, 4, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())  # finds: item
