"""Accumulation whose length grows while training: 1, then 2, then 4."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

data = TensorDataset(torch.randn(1600, 512), torch.randn(1600, 1))
loader = DataLoader(data, batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for length in (1, 2, 4):
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        loss = nn.functional.mse_loss(model(x), y) / length
        loss.backward()
        if (i + 1) % length == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
print(losses)
