"""What a product, another shape and a function give here are numbers."""

import torch
from torch import nn


def hardest(losses, labels):
    return losses.argsort() * labels.numel()


class Loss(nn.Module):
    def forward(self, out, labels):
        both = labels.argsort() * labels.numel()
        labels = labels[both]
        out = out[both.view(-1)]
        losses = out.square().mean(1)
        chosen = hardest(losses, labels)
        return losses[chosen].mean()


criterion = Loss()
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    labels = torch.randint(9, (8,), device="cuda")
    loss = criterion(model(torch.randn(8, 4, device="cuda")), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
