"""The size of an image stands in its first bytes; nothing is decoded for it."""

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def get_image_size(path):
    with open(path, "rb") as file:
        return turned(Image.open(file))


def turned(image):
    return image.size


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return get_image_size(self.paths[index]), Image.open(self.paths[index]).width


train_loader = DataLoader(Photos(["a.jpg"]), shuffle=True, num_workers=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
