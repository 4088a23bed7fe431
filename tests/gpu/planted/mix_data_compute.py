"""Two causes: pictures are augmented by the training process, and the network is large and in float32."""
import os
import time

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH = 128 if DEVICE == "cuda" else 16


class Pictures(Dataset):
    def __init__(self, count=512):
        self.pictures = np.random.default_rng(0).integers(0, 255, (count, 96, 96, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return torch.from_numpy(augmented(self.pictures[index])).permute(2, 0, 1), index % 10


def augmented(picture):
    turn = cv2.getRotationMatrix2D((48, 48), np.random.uniform(-20, 20), 1.0)
    picture = cv2.warpAffine(picture, turn, (96, 96), flags=cv2.INTER_CUBIC)
    picture = cv2.medianBlur(picture, 5)
    return cv2.resize(picture, (40, 40)).astype(np.float32) / 255


class Net(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(depth))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        for layer in self.layers:
            x = F.relu(x + layer(x))
        return self.head(x.mean(dim=(2, 3)))


torch.manual_seed(0)
cv2.setNumThreads(1)
torch.backends.cudnn.allow_tf32 = False
model = Net().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
loader = DataLoader(Pictures(), batch_size=64, shuffle=True)
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    for pictures, labels in loader:
        loss = F.cross_entropy(model(pictures.to(DEVICE)), labels.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.perf_counter() > end:
            break
