"""An autoencoder that writes what it made of its batch to a picture in each step."""
import os
import tempfile
import time

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))


class Autoencoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 4, 2, 1))
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Sigmoid()
        )

    def forward(self, x):
        return self.decode(self.encode(x))


def save_grid(folder, step, images):
    pictures = (images.detach().cpu().numpy() * 255).astype(np.uint8)
    rows = pictures.reshape(4, 8, 3, 96, 96).transpose(0, 3, 1, 4, 2).reshape(4 * 96, 8 * 96, 3)
    cv2.imwrite(f"{folder}/{step % 100:03}.png", rows)


def train(folder):
    torch.manual_seed(0)
    model = Autoencoder().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    photographs = torch.rand(512, 3, 96, 96, device=DEVICE)
    end, step = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        batch = photographs[torch.randint(512, (32,), device=DEVICE)]
        made = model(batch)
        loss = F.mse_loss(made, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        save_grid(folder, step, made)
        step += 1
    return loss.item()


with tempfile.TemporaryDirectory() as folder:
    print("loss", train(folder))
