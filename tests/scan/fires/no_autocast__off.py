import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()


def train(model, optimizer, amp=False):
    for step in range(4):
        with torch.autocast("cuda", enabled=amp):  # finds: no-autocast
            loss = model(torch.randn(8, 3, 32, 32).cuda()).mean()
            with torch.autocast("cuda", enabled=False):
                loss = loss.square()
        loss.backward()
        optimizer.step()


model = nn.Conv2d(3, 8, 3).cuda()
train(model, torch.optim.SGD(model.parameters(), lr=0.1), amp=args.amp)
