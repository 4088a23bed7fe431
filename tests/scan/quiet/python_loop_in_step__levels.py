"""What a part of the model returns is a list of levels."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Levels(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        return [part(x) for part in self.parts]


class Distance(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = Levels()

    def forward(self, x, y):
        one, other = self.levels(x), self.levels(y)
        loss = 0
        for i in range(len(one)):
            loss += (one[i] - other[i].detach()).abs().mean()
        return loss


criterion = Distance().to(device)
optimizer = torch.optim.SGD(criterion.parameters(), lr=0.1)
for step in range(20):
    loss = criterion(torch.randn(8, 4, device=device), torch.randn(8, 4, device=device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
