"""Training reads what it may read."""

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import ImageFolder


class Photos(Dataset):
    def __init__(self, root):
        self.root = root

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return Image.open(f"{self.root}/{index}.png")  # finds: decodes-again


train_data = Photos("train")
test_data = ImageFolder("test")
train_loader = DataLoader(train_data, shuffle=True, num_workers=4)
test_loader = DataLoader(test_data, shuffle=False, num_workers=4)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(30):
    for x in train_loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
