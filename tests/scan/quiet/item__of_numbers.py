"""A tensor of Python's numbers lies on the CPU: its value is there at once."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pooled(nn.Module):
    def forward(self, x):
        return x.view(-1, torch.prod(torch.IntTensor([2, 2])).item())


model, pool = nn.Linear(4, 4).to(device), Pooled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = pool(model(torch.randn(8, 4, device=device))).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
