import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history, means, terms = [], [], []
for epoch in range(2):
    running, seen = 0.0, 0
    for step in range(5):
        parts = []
        loss = 0
        for scale in (1, 2):
            part = model(torch.randn(8, 4)).square().mean() * scale
            parts.append(part)
            loss += part
        terms.append(loss)
        total = sum(parts)
        if len(terms) == 2:
            terms.clear()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        running += loss.item()
        running += loss.detach()
        seen += 8
        history.append(loss.detach())
        history.append(float(loss))
    means.append(running / seen)
