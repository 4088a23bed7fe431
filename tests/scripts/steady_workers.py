"""A convolutional classifier whose one worker keeps up with ease."""
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Discs and squares on a noisy ground, drawn when they are asked for."""

    def __init__(self, count, size=32):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        picture = rng.normal(0, 0.1, (1, self.size, self.size)).astype(np.float32)
        y, x = np.ogrid[: self.size, : self.size]
        cy, cx, r = rng.integers(8, self.size - 8, 2).tolist() + [6]
        label = index % 2
        inside = (y - cy) ** 2 + (x - cx) ** 2 < r * r if label else (abs(y - cy) < r) & (abs(x - cx) < r)
        picture[0][inside] += 1
        return torch.from_numpy(picture), label


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(48, 2)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train(model, loader, optimizer, epochs):
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Shapes(960), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    model = ConvNet()
    train(model, loader, optim.SGD(model.parameters(), lr=0.05, momentum=0.9), epochs=1)


if __name__ == "__main__":
    main()
