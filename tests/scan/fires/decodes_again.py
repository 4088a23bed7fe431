import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read(path):
    return cv2.imread(path)  # finds: decodes-again


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")  # finds: decodes-again
        mask = Image.open(self.paths[index].replace("jpg", "png"))
        return image, mask, read(self.paths[index])


train_loader = DataLoader(Photos(["a.jpg"]), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
