import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--half", default=True)
args = parser.parse_args()
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autocast("cuda", enabled=args.amp):
        loss = model(torch.randn(8, 3, 32, 32).cuda()).mean()
    with torch.autocast("cuda", enabled=args.half):
        loss += model(torch.randn(8, 3, 32, 32).cuda()).mean()
    loss.backward()
    optimizer.step()
