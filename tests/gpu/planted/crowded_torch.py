"""Spectra are made on the CPU in the loop, by torch with far more threads than there are cores."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
CORES = len(os.sched_getaffinity(0))
torch.set_num_threads(8 * CORES)
torch.manual_seed(0)
sounds = torch.randn(64, 16000)
model = nn.Sequential(nn.Linear(401, 256), nn.ReLU(), nn.Linear(256, 10)).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
window = torch.hann_window(800)


def spectra(batch):
    noisy = batch + 0.01 * torch.randn_like(batch)
    frames = noisy.unfold(1, 800, 200) * window
    return torch.log1p(torch.fft.rfft(frames).abs()).mean(dim=1)


end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    features = spectra(sounds)
    loss = F.cross_entropy(model(features.to(DEVICE)), torch.randint(10, (64,), device=DEVICE))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
