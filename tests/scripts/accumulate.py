"""Gradient accumulation over four batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

data = TensorDataset(torch.randn(1920, 256), torch.randint(0, 10, (1920,)))
loader = DataLoader(data, batch_size=16)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for i, (x, y) in enumerate(loader):
    x, y = x.to(device), y.to(device)
    loss = nn.functional.cross_entropy(model(x), y) / 4
    loss.backward()
    losses.append(loss.item())
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
print(losses)
