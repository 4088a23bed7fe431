import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autocast("cuda"):
        loss = model(torch.randn(8, 4).cuda()).mean()
        shown = loss.detach()
    loss.backward()
    optimizer.step()
    with torch.autocast("cuda", enabled=False):
        model(torch.randn(8, 4).cuda()).mean().backward()
    with torch.autocast("cuda", enabled=args.amp):
        model(torch.randn(8, 4).cuda()).mean().backward()
