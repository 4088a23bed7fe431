import torch
from torch import nn


class Base:
    def optimize_parameters(self):
        raise NotImplementedError


class Sharpener(Base):
    def __init__(self):
        self.net = nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def optimize_parameters(self):
        self.net(torch.randn(2, 4)).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def create(name):
    return {"sharpener": Sharpener}[name]()


model = create("sharpener")
for epoch in range(2):
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    for step in range(3):
        model.optimize_parameters()
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # finds: synchronize
