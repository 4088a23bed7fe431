"""A loss that nothing makes, though it names itself."""

import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self):
        super(Counted, self).__init__()

    def forward(self, x):
        return x.sum() / x.numel() * x.max().item()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
