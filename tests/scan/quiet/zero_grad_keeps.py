import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.zero_grad(set_to_none=False)
image = torch.randn(8, 4, requires_grad=True)
for step in range(5):
    optimizer.zero_grad()
    model(image).square().mean().backward()
    optimizer.step()
    image.grad.zero_()
    buffer = torch.ones(3).zero_()
    model.zero_grad(set_to_none=True)
    if step % 100 == 0:
        optimizer.zero_grad(set_to_none=False)
