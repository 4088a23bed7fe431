import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(20):
    x = torch.randn(8, 4, device=device)
    if step % 4 == 0:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()  # finds: item
        if step % 8 == 0:
            print(loss.item())
    else:
        print(x.sum().item())  # finds: item
    if step % 4 == 0:
        print(loss.item())
