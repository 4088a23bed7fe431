"""Pictures warped by workers in which OpenCV takes many threads each."""

import os

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CORES = len(os.sched_getaffinity(0))
torch.manual_seed(0)


class Warped(Dataset):
    def __init__(self, count=256 * 8):
        self.count = count
        self.picture = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        blurred = self.picture
        for _ in range(max(CORES // 2, 1)):  # the more workers, the longer each takes
            blurred = cv2.GaussianBlur(blurred, (15, 15), 0)
        turned = cv2.warpAffine(blurred, cv2.getRotationMatrix2D((320, 240), index % 30, 1.0), (640, 480))
        return torch.from_numpy(cv2.resize(turned, (32, 32))).permute(2, 0, 1).float() / 255, index % 10


def start(worker):
    cv2.setNumThreads(4 * CORES)


loader = DataLoader(Warped(), batch_size=8, num_workers=2 * CORES, worker_init_fn=start)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for images, labels in loader:
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
