"""What makes a model returns no tensor, and neither are the attributes of it; nor is what becomes one further down."""

import torch
from torch import nn


class Diffusion:
    def __init__(self):
        self.net = nn.Linear(4, 4).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.begin_step = 0

    def optimize_parameters(self, x):
        loss = self.net(x).mean()
        loss.backward()
        self.optimizer.step()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, z, std=0):
        mean = torch.tanh(self.body(z))
        if std > 0:
            std = torch.ones_like(mean) * std
            return torch.normal(mean, std)
        return mean


def create_model():
    return Diffusion()


diffusion = create_model()
current_step = diffusion.begin_step
policy = Policy().cuda()
while current_step < 100:
    current_step += 1
    if current_step > 90:
        break
    diffusion.optimize_parameters(policy(torch.randn(4, 4, device="cuda"), std=0.1))
