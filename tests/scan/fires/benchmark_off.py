import torch
from torch import nn
from torch.backends import cudnn

cudnn.benchmark = False  # finds: benchmark-off
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
