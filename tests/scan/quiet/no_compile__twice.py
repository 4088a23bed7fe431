"""A penalty on gradients goes backward twice, which torch.compile does not do."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(8, 3, 32, 32, device=device, requires_grad=True)
    out = model(x).square().mean()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    loss = out + slope.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
