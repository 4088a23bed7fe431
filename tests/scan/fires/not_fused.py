import torch
from torch import nn, optim

a, b = nn.Linear(4, 1).cuda(), nn.Linear(4, 1).cuda()
first = optim.AdamW(a.parameters(), lr=0.1)  # finds: not-fused
second = optim.AdamW(b.parameters(), lr=0.1)
for step in range(4):
    b(a(torch.randn(8, 4).cuda())).mean().backward()
    first.step()
    optimizer.step()
