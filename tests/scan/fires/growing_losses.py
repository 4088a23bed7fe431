import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for epoch in range(2):
    running = 0.0
    for step in range(5):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        running += loss  # finds: growing-losses
        history.append(loss)  # finds: growing-losses
    print(running / 5)
