import torch
from torch import nn
from torch.utils import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        x = checkpoint.checkpoint(self.a, x)  # finds: checkpoint-reentrant
        return checkpoint.checkpoint(self.b, x, use_reentrant=True)  # finds: checkpoint-reentrant


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
