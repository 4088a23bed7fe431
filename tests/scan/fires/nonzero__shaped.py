"""A mask through a name, as a product, in another shape, and out of a function."""

import torch
from torch import nn


def hardest(losses, labels):
    return (labels > 0) | (losses > 1)


class Loss(nn.Module):
    def forward(self, out, labels):
        both = (labels >= 0) * (labels != 255)
        labels = labels[both]  # finds: nonzero
        out = out[both.view(-1, 1).repeat(1, 4)].view(-1, 4)  # finds: nonzero
        losses = out.square().mean(1)
        chosen = hardest(losses, labels)
        return losses[chosen].mean()  # finds: nonzero


criterion = Loss()
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    labels = torch.randint(9, (8,), device="cuda")
    loss = criterion(model(torch.randn(8, 4, device="cuda")), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
