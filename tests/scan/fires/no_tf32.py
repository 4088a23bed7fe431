import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
model = nn.TransformerEncoderLayer(64, 4)
model = model.cuda()  # finds: no-tf32
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autocast("cuda", enabled=args.amp):
        loss = model(torch.randn(8, 3, 64).cuda()).mean()
    loss.backward()
    optimizer.step()
