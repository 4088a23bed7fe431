"""Two stages, each with an optimizer of its own, both kept: first the head, then everything."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

body, head = nn.Sequential(nn.Linear(256, 1024), nn.ReLU()).to(device), nn.Linear(1024, 1).to(device)
x, y = torch.randn(128, 256).to(device), torch.randn(128, 1).to(device)
first = torch.optim.SGD(head.parameters(), lr=0.01)
second = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.001)
losses = []
for optimizer in (first, second):
    for step in range(60):
        loss = nn.functional.mse_loss(head(body(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
