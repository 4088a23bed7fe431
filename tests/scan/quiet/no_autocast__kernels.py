"""An operation of its own, which takes float32 alone."""

import torch
from torch import nn
from torch.utils.cpp_extension import load

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

grouped = load(name="grouped", sources=["grouped.cu"])

model = nn.Sequential(nn.Conv2d(3, 8, 3)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 3, 9, 9, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
