import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Heatmaps(Dataset):
    def __init__(self, height, width):
        self.height, self.width = height, width

    def __len__(self):
        return 10

    def __getitem__(self, index):
        target = np.zeros((self.height, self.width), np.float32)
        for y in range(self.height):  # finds: python-loop-in-sample
            for x in range(self.width):
                target[y, x] = math.exp(-((x - index) ** 2 + (y - index) ** 2) / 8)
        return self.corrected(target)

    def corrected(self, image):
        out = image.copy()
        for row in range(image.shape[0]):  # finds: python-loop-in-sample
            for column in range(image.shape[1]):
                out[row][column] = image[row, column] ** 0.5
        return out


def main():
    model = nn.Linear(16, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(Heatmaps(16, 16)):
        loss = model(x.cuda()).square().mean()
        loss.backward()
        optimizer.step()
