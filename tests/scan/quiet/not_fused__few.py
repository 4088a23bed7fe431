"""An optimizer of one number has nothing to fuse."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
temperature = torch.zeros(1, device=device, requires_grad=True)
optimizer = torch.optim.Adam([temperature], lr=0.1)
for step in range(20):
    loss = (temperature - 3).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
