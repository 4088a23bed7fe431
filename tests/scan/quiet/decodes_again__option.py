"""A dataset that keeps what it has decoded where an option asks for it, which it does by default."""

import argparse

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, files, cache_images=False):
        self.files = files
        self.pictures = [None] * len(files)
        if cache_images:
            self.pictures = [self.load(index) for index in range(len(files))]

    def __len__(self):
        return len(self.files)

    def load(self, index):
        if self.pictures[index] is not None:
            return self.pictures[index]
        return np.array(Image.open(self.files[index]))

    def __getitem__(self, index):
        return self.load(index)


parser = argparse.ArgumentParser()
parser.add_argument("--cache", type=bool, default=True)
args = parser.parse_args()
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(Pictures(["a.jpg"], cache_images=args.cache), batch_size=8, shuffle=True)
for epoch in range(3):
    for image in train_loader:
        loss = model(image.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
