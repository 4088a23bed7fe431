"""A small image classifier whose augmentation, in plain numpy, cannot keep up with the model."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES = 64, 10


def jitter(image, rng):
    return np.clip(image * rng.uniform(0.8, 1.2) + rng.uniform(-0.1, 0.1), 0, 1)


def blur(image, passes):
    for _ in range(passes):
        padded = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="edge")
        image = sum(
            padded[:, dy : dy + SIZE, dx : dx + SIZE] for dy in range(3) for dx in range(3)
        ) / 9
    return image


class Shapes(Dataset):
    """Synthetic images: a bright bar whose position is the class."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        label = index % CLASSES
        image = rng.random((3, SIZE, SIZE)) * 0.3
        image[:, :, label * 6 : label * 6 + 6] += 0.6
        image = blur(jitter(image, rng), passes=6)
        return torch.from_numpy(image).float(), label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(8),
        )
        self.head = nn.Linear(32 * 64, CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Shapes(2400), batch_size=24, shuffle=True, num_workers=1)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        total = 0.0
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
