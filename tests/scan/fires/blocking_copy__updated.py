"""The loader's arguments are a copy of others, of which another may be changed."""

import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GIVEN = {"batch_size": 8, "pin_memory": True}
arguments = dict(GIVEN)
if "--more" in sys.argv:
    arguments.update(num_workers=8)
warnings.simplefilter("ignore")  # that there is nothing to pin for
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(TensorDataset(torch.randn(32, 4)), shuffle=True, **arguments)
for (x,) in train_loader:
    loss = model(x.to(device)).square().mean()  # finds: blocking-copy
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("loss", loss.item())
