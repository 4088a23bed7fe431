"""Over the one GPU that the option names."""

import argparse

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

parser = argparse.ArgumentParser()
parser.add_argument("--gpu_ids", default="0")
args = parser.parse_args()

model = nn.DataParallel(nn.Linear(4, 1), args.gpu_ids).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
