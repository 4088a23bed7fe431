"""What only an argument leads to that nothing in the project ever gives."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="+")
args = parser.parse_args()


def measured(model, x):
    loss = model(x).mean()
    print(loss.item())
    return loss


def plain(model, x):
    return model(x).mean()


model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(8, 4, device="cuda")
    if args.data[0] == "gtzan":
        loss = measured(model, x)
    else:
        loss = plain(model, x)
    loss.backward()
    optimizer.step()
