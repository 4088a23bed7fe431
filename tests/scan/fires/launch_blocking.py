import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # finds: launch-blocking
import torch
from torch import nn

os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")  # finds: launch-blocking
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item())
