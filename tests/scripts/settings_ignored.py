"""The configuration is read, and then only some of it is used."""
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
with open(Path(__file__).parent / "configs" / "ignored.yaml") as file:
    config = yaml.safe_load(file)
torch.backends.cudnn.benchmark = False

data = TensorDataset(torch.randn(600, 64), torch.randn(600, 1))
loader = DataLoader(data, batch_size=config["data"]["batch_size"], shuffle=config["data"]["shuffle"])
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(8)], nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=config["train"]["lr"])
losses = []
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
