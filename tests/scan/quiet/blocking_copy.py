import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
pinned = DataLoader(data, batch_size=8, pin_memory=True)
pageable = DataLoader(data, batch_size=8)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    model.eval()
    with torch.no_grad():
        for x, y in pinned:
            x, y = x.to(device), y.to(device)
            print(model(x).mean(), y.mean())


for x, y in pinned:
    x, y = x.to(device, non_blocking=True), y.cuda(0, True) if device.type == "cuda" else y
    goal = y.to(torch.float32).mul(2).to("cpu")
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    other = loss.to(device)
for x, y in pageable:
    x, y = x.to(device), y.to(device)
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
validate()
