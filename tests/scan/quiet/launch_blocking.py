import os

import torch
from torch import nn

DEBUG = False
os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
# os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
if DEBUG:
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
    print("slow")
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
