"""Validation at the top of an iteration, between its batch and its forward pass."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

train = DataLoader(TensorDataset(torch.randn(960, 256), torch.randn(960, 1)), batch_size=16)
val = DataLoader(TensorDataset(torch.randn(320, 256), torch.randn(320, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step, (x, y) in enumerate(train):
    x, y = x.to(device), y.to(device)
    if step % 5 == 0:
        model.eval()
        with torch.no_grad():
            total = 0.0
            for a, b in val:
                a, b = a.to(device), b.to(device)
                total += nn.functional.mse_loss(model(a), b).item()
        model.train()
        print("val", step, repr(total))
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
