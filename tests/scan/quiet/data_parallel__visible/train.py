"""Over as many GPUs as are seen, of which the program lets itself see the one that an option names."""

import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default="0")
args = parser.parse_args()
os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu

model = nn.Linear(4, 1)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device="cuda")).mean().backward()
    optimizer.step()
