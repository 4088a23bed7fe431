"""A copy of the batch in another type, or one that is pinned right there, is not what the loader has pinned."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

device = torch.device("cuda")
model = nn.Conv2d(3, 8, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for image, label in DataLoader(ImageFolder("pictures"), batch_size=8, shuffle=True, num_workers=4, pin_memory=True):
    label = label.long().to(device)
    loss = model(image.half().to(device)).square().mean() + label.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
