"""The loss is computed on the CPU, which a device of its own says."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, device, loss_device):
        super().__init__()
        self.loss_device = loss_device
        self.body = nn.Linear(4, 1).to(device)
        self.weight = nn.Parameter(torch.ones(1)).to(loss_device)

    def forward(self, x):
        return self.body(x)

    def loss(self, out):
        target = torch.zeros(8, 1).to(self.loss_device)
        return (out * self.weight - target).square().mean()


def train():
    device = torch.device("cuda")
    loss_device = torch.device("cpu")
    model = Net(device, loss_device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(20):
        out = model(torch.randn(8, 4, device=device))
        out_there = out.to(loss_device)
        loss = model.loss(out_there)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())


train()
