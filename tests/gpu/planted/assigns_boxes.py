"""A detector whose loss assigns boxes to cells in a loop over images, and asks the GPU how many for each box."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))


class Scenes(Dataset):
    def __init__(self, count=256, size=128):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.rand(count, 3, size, size, generator=generator)
        corners = torch.rand(count, 6, 2, generator=generator) * size / 2
        self.boxes = torch.cat((corners, corners + 8 + torch.rand(count, 6, 2, generator=generator) * size / 2), dim=2)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.boxes[index]


class Detector(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(width, 5, 1)

    def forward(self, images):
        return self.head(self.body(images)).flatten(2).transpose(1, 2)


def overlap(box, boxes):
    low, high = torch.maximum(box[:2], boxes[:, :2]), torch.minimum(box[2:], boxes[:, 2:])
    inside = (high - low).clamp(min=0).prod(dim=1)
    return inside / ((box[2:] - box[:2]).prod() + (boxes[:, 2:] - boxes[:, :2]).prod(dim=1) - inside)


@torch.no_grad()
def assign(predicted, boxes):
    """Which of the cells each box takes: as many as its overlaps add up to."""
    wanted = torch.zeros_like(predicted)
    for box in boxes:
        ious = overlap(box, predicted[:, 1:] * 32)
        many = max(int(ious.topk(10).values.sum().item()), 1)
        cells = (ious - (predicted[:, 0] - 1).square()).topk(many).indices
        wanted[cells] = torch.cat((torch.ones(1, device=box.device), box / 32))
    return wanted


def detection_loss(predicted, boxes):
    wanted = torch.stack([assign(p.detach(), b) for p, b in zip(predicted, boxes)])
    taken = wanted[..., 0]
    objectness = F.binary_cross_entropy_with_logits(predicted[..., 0], taken)
    return objectness + (taken[..., None] * (predicted[..., 1:] - wanted[..., 1:]).abs()).mean()


torch.manual_seed(0)
model = Detector().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
loader = DataLoader(Scenes(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True, pin_memory=True)
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    for images, boxes in loader:
        images, boxes = images.to(DEVICE, non_blocking=True), boxes.to(DEVICE, non_blocking=True)
        loss = detection_loss(model(images), boxes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.perf_counter() > end:
            break
print("loss", loss.item())
