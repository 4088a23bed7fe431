"""Two causes: samples are filtered by the training process, and the host waits for each step's loss before it goes on."""
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
LENGTH, WIDTH, BATCH = (4096, 4096, 96) if DEVICE == "cuda" else (512, 256, 32)


class Signals(Dataset):
    def __init__(self, count=4096):
        self.signals = np.random.default_rng(0).normal(size=(count, LENGTH)).astype(np.float32)

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return torch.from_numpy(filtered(self.signals[index])), torch.from_numpy(self.signals[index])


def filtered(signal):
    spectrum = np.fft.rfft(signal)
    spectrum[len(spectrum) // 4 :] = 0
    return np.fft.irfft(spectrum, len(signal)).astype(np.float32)


torch.manual_seed(0)
layers = [nn.Linear(LENGTH, WIDTH), nn.GELU()]
for _ in range(35):
    layers += [nn.Linear(WIDTH, WIDTH), nn.GELU()]
model = nn.Sequential(*layers, nn.Linear(WIDTH, LENGTH)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
loader = DataLoader(Signals(), batch_size=BATCH, shuffle=True)
end, best = time.perf_counter() + SECONDS, float("inf")
while time.perf_counter() < end:
    for noisy, clean in loader:
        loss = F.mse_loss(model(noisy.to(DEVICE)), clean.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = min(best, loss.item())
        if time.perf_counter() > end:
            break
print("best", best)
