import torch
from torch import nn

settings = {"fused": True}
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), **settings)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
