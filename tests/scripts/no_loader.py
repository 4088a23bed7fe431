"""Batches drawn by index from a tensor in memory."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

features, targets = torch.randn(4096, 256), torch.randn(4096, 1)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(100):
    index = torch.randint(0, 4096, (48,))
    x, y = features[index].to(device), targets[index].to(device)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
