"""Healthy: a convolutional classifier in bfloat16 and channels_last, with workers that keep up."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH, BATCH, SIDE = (512, 128, 64) if DEVICE == "cuda" else (16, 8, 16)


class Textures(Dataset):
    def __init__(self, count=2048):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 255, (count, 3, SIDE, SIDE), dtype=torch.uint8, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].roll(index % SIDE, dims=2), index % 20


class ConvNet(nn.Module):
    def __init__(self, depth=8):
        super().__init__()
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(depth))
        self.head = nn.Linear(WIDTH, 20)

    def forward(self, images):
        x = F.relu(self.first(images.float() / 255))
        for layer in self.layers:
            x = F.relu(layer(x), inplace=True)
        return self.head(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(
        Textures(), batch_size=BATCH, shuffle=True, num_workers=4, pin_memory=DEVICE == "cuda", persistent_workers=True
    )
    model = ConvNet().to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for images, labels in loader:
            images = images.to(DEVICE, non_blocking=True).to(memory_format=torch.channels_last)
            labels = labels.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("loss", loss.item())


main()
