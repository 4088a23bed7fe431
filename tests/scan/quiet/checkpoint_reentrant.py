import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, use_checkpoint=False):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        x = checkpoint(self.a, x, use_reentrant=False)
        if self.use_checkpoint:
            x = checkpoint(self.a, x)
        return self.b(x)


def load_checkpoint(path):
    return checkpoint


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
