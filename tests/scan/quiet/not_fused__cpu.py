import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
