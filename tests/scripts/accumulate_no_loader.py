"""Accumulation without a loader: three micro-batches an optimizer step."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range(40):
    optimizer.zero_grad()
    for micro in range(3):
        x = torch.randn(16, 512).to(device)
        loss = model(x).square().mean() / 3
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
print(losses)
