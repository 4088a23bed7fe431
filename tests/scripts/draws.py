"""Draws the batch and its reconstruction as a picture file in every step."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def heat(values):
    """Grey values as colours, from blue to red."""
    scaled = (values - values.min()) / (np.ptp(values) + 1e-6)
    channels = [np.clip(1.5 - np.abs(4 * scaled - centre), 0, 1) for centre in (3, 2, 1)]
    return (np.stack(channels, -1) * 255).astype(np.uint8)


def save_grid(inputs, outputs, path):
    pairs = np.concatenate([inputs.numpy(), outputs.detach().numpy()], axis=2)[:, 0]
    rows = [np.concatenate(list(pairs[start : start + 4]), axis=1) for start in range(0, len(pairs), 4)]
    grid = np.kron(np.concatenate(rows, axis=0), np.ones((2, 2)))
    Image.fromarray(heat(grid)).save(path)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clean = torch.randn(720, 1, 1, 1) * torch.sin(torch.arange(32) / 3.0).view(1, 1, 1, 32).expand(-1, -1, 32, -1)
    loader = DataLoader(TensorDataset(clean), batch_size=12)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        for step, (batch,) in enumerate(loader):
            noisy = batch + 0.3 * torch.randn_like(batch)
            restored = model(noisy)
            loss = nn.functional.mse_loss(restored, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            save_grid(noisy, restored, Path(folder) / f"{step:04}.png")
    print(loss.item())


main()
