import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
