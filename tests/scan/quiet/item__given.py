"""Only where a parameter is not given, as training gives it."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def masked(lengths, longest=None):
    if longest is None:
        longest = lengths.max().item()
    return torch.arange(longest, device=device) < lengths[:, None]


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) * masked(torch.full((8,), 2, device=device), x.shape[1])


model = Masked().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
