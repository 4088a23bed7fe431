import cv2
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return 8

    def __getitem__(self, index):
        path = "%d.jpg" % index
        a = cv2.resize(cv2.imread(path, cv2.IMREAD_REDUCED_COLOR_4), (64, 64))
        b = Image.open(path).convert("RGB")
        c = cv2.imread(path)
        c = cv2.resize(c, (1920, 1080))
        d = cv2.imread(path)
        d = d[10:100]
        d = cv2.resize(d, (64, 64))
        e = Image.open(path).resize(self.size)
        return a, b, c, d, e


train_loader = DataLoader(Photos(size), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
