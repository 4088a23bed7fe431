"""What stands in the branch for the CPU is not reached on a GPU."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
if device.type == "cuda":
    model = DistributedDataParallel(model, device_ids=[0])
else:
    model = DistributedDataParallel(model, find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
