"""As many loader workers as cores, and in each of them OpenCV with as many threads again."""
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
CORES = len(os.sched_getaffinity(0))


class Photographs(Dataset):
    """Warped, blurred and resized anew each time."""

    def __init__(self, count=100_000):
        self.count = count
        self.photograph = np.random.default_rng(0).integers(0, 255, (720, 960, 3), dtype=np.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        turn = cv2.getRotationMatrix2D((480, 360), index % 30 - 15, 1.0)
        image = cv2.warpAffine(self.photograph, turn, (960, 720))
        image = cv2.GaussianBlur(image, (15, 15), 0)
        image = cv2.resize(image, (224, 224))
        return torch.from_numpy(image).permute(2, 0, 1).float() / 255, index % 10


torch.manual_seed(0)
photographs = Photographs()
loader = DataLoader(photographs, batch_size=32, num_workers=max(CORES, 2), pin_memory=DEVICE == "cuda")
model = nn.Sequential(
    nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(64, 10),
).to(DEVICE)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.perf_counter() + SECONDS
for images, labels in loader:
    loss = F.cross_entropy(model(images.to(DEVICE)), labels.to(DEVICE))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.perf_counter() > end:
        break
