"""Pictures one by one, each as large as it is: every size would be compiled anew."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

device = torch.device("cuda")
model = nn.Conv2d(3, 8, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(ImageFolder("pictures"), batch_size=1, shuffle=True, num_workers=4)
for epoch in range(3):
    for image, _ in loader:
        loss = model(image.to(device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
