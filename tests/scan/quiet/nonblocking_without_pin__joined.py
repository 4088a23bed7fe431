"""Two views of a batch are put together after they are moved."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(ImageFolder("pictures"), batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
for views, label in train_loader:
    first, second = views
    first = first.cuda(non_blocking=True)
    second = second.cuda(non_blocking=True)
    views = torch.cat([first, second], dim=0)
    views = views.cuda(non_blocking=True)
    label = label.cuda(non_blocking=True)
    loss = model(views).square().mean() + label.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
