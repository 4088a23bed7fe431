import torch
from torch import nn
from torchvision import transforms

transform = transforms.RandomResizedCrop(224)
model = nn.Conv2d(3, 8, 3).cuda()  # finds: benchmark-off
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
