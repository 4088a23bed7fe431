"""What is trained on reads arrays; only the other, for evaluation, decodes."""

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return np.array(Image.open(self.files[index]))


class Arrays(Pictures):
    def __getitem__(self, index):
        return np.load(self.files[index], mmap_mode="r")


model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(Arrays(["a.npy"]), batch_size=8, shuffle=True)
val_loader = DataLoader(Pictures(["a.jpg"]), batch_size=8)
for epoch in range(3):
    for image in train_loader:
        loss = model(image.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
