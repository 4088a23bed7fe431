import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def report(loss):
    return f"{loss.item():.3f}"  # finds: item


def train_one(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


total = 0.0
for step in range(20):
    loss = train_one(torch.randn(8, 4, device=device), torch.randn(8, 1, device=device))
    total += loss.item() / (1 + loss.item())  # finds: item
    text = report(loss)
