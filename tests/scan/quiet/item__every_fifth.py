"""One model takes a step each time, another every fifth: what is done there is not done in every step."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = nn.Linear(4, 1).to(device)
other_optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(8, 4, device=device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if (step + 1) % 5 == 0:
        other_loss = other(x).square().mean()
        other_loss.backward()
        other_optimizer.step()
        other_optimizer.zero_grad()
        total = other_loss.item()
