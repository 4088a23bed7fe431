"""A loader that a loop goes through to measure samples, and nothing else."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from tqdm import tqdm

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def widths(dataset):
    loader = DataLoader(dataset, batch_size=1, shuffle=True, num_workers=4)
    found = []
    with tqdm(total=len(loader)) as bar:
        for image, _ in loader:
            bar.update(1)
            found.append(image.shape[-1])
    return found


dataset = ImageFolder("pictures")
model = nn.Conv2d(3, 8, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(max(widths(dataset)))
for epoch in range(3):
    for image, _ in DataLoader(dataset, batch_size=8, shuffle=True, num_workers=4, pin_memory=True):
        loss = model(image.to(device, non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
