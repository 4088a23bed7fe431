"""Every fourth time there is a step, and what is done then is done in every step."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(80):
    loss = model(torch.randn(8, 4, device=device)).square().mean()
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
        total = loss.item()  # finds: item
