import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")  # that there is nothing to pin for
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
settings = dict(batch_size=8, pin_memory=True)
train_loader = DataLoader(data, **settings)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device=device)  # finds: blocking-copy
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"loss {loss.item():.6f}")


train(train_loader)
for batch in train_loader:
    x = batch[0].to(device)  # finds: blocking-copy
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")
