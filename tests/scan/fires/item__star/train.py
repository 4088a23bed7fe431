"""A function that is imported with everything else, and a scaler that takes the step itself."""

import torch
from measures import *  # noqa: F403
from timm.utils import NativeScaler
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_scaler = NativeScaler()
for step in range(20):
    out = model(torch.randn(8, 4, device=device))
    loss = out.square().mean()
    loss_scaler(loss, optimizer)
    optimizer.zero_grad()
    right = share(out)  # noqa: F405
    total = loss.item()  # finds: item
