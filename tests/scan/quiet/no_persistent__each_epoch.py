"""A function makes the loader anew in each epoch, of other samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import ImageFolder


def train_loader(dataset, epoch):
    return DataLoader(Subset(dataset, range(epoch, 100)), batch_size=8, shuffle=True, num_workers=4, pin_memory=True)


dataset = ImageFolder("pictures")
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    loader = train_loader(dataset, epoch)
    for image, _ in loader:
        loss = model(image.cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
