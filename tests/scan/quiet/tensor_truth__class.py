"""A question about a class is no question about values; nor is what an attack asks for part of training."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        x = self.body(x)
        if torch.jit.isinstance(x, dict[str, torch.Tensor]):
            x = x["out"]
        return x


class Wrapper:
    def __init__(self, model):
        self.model = model

    def get_grad(self, x):
        self.model.train()
        loss = self.model(x).mean()
        loss.backward()
        return x.grad


def attack(wrapper, words):
    for word in words:
        scores = torch.softmax(wrapper.get_grad(word), 0)
        if (scores > 0.5).any():
            return word


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(attack(Wrapper(model), []))
