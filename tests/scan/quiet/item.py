import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    with torch.no_grad():
        return sum(model(torch.randn(8, 4)).sum().item() for _ in range(10))


losses = []
for epoch in range(3):
    for step in range(20):
        loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if step % 10 == 0:
            print(loss.item())
        if step + 1 in (1, 20):
            print(loss.item())
        scale = np.float32(0.5).item()
        if step % 10 != 0:
            continue
        print(loss.item())
    print(torch.stack(losses).mean().item(), validate())
print(loss.item())
