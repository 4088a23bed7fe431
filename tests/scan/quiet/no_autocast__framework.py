import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Conv2d(3, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for step in range(4):
    accelerator.backward(model(torch.randn(8, 3, 32, 32)).mean())
    optimizer.step()
