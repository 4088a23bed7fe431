"""Four samples are added up for a step."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last, loss = 999, 0
for cnt in range(1000):
    if (cnt + 1) % args.batch_size != 0 and cnt != last:
        loss = loss + model(torch.randn(1, 4, device="cuda")).square().mean()
    else:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())  # finds: item
        loss = 0
