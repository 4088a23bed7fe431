"""The dataset is told something between epochs, through the loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(ImageFolder("pictures"), batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
for epoch in range(3):
    train_loader.dataset.shuffle_pairs()
    for image, _ in train_loader:
        loss = model(image.cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
