"""Names that are set to what they were, and one that stands for a modulo."""

import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
is_late = False
for step in range(100):
    is_late = is_late or step > 50
    is_due = is_late and step % 10 == 0
    loss = model(torch.randn(8, 4).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    if is_due:
        print(loss.item())
