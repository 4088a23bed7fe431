import torch
from torch import nn

model = nn.Conv2d(3, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32)).mean().backward()
    optimizer.step()
