"""Tensors that are compared only where they are not one and the same."""

import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, query, key):
        if query is key or torch.equal(query, key):
            return query.square()
        return query @ key


model = nn.Linear(4, 4).cuda()
attention = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    out = model(torch.randn(4, 4, device="cuda"))
    loss = attention(out, out).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
