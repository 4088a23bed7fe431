"""An option that is an empty list by default is off."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--more", default="")
args = parser.parse_args()
more = [] if not args.more else args.more.split(",")
has_more = len(more) > 0
model, other = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 4).cuda()
if has_more:
    optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()], lr=0.1)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # finds: not-fused
for step in range(20):
    loss = model(torch.randn(4, 4, device="cuda")).mean()
    loss.backward()
    optimizer.step()
