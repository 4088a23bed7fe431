"""Each sample is unpacked and parsed from text when it is asked for, in the training process."""
import csv
import io
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Measurements(Dataset):
    """Compressed tables of comma-separated values, as a folder of files would have them."""

    def __init__(self, count, rows=240):
        generator = torch.Generator().manual_seed(0)
        self.blobs, self.labels = [], []
        for number in range(count):
            table = torch.randn(rows, 8, generator=generator) + number % 3
            text = "\n".join(",".join(f"{value:.6f}" for value in row) for row in table.tolist())
            self.blobs.append(zlib.compress(text.encode()))
            self.labels.append(number % 3)

    def __len__(self):
        return len(self.blobs)

    def __getitem__(self, index):
        text = zlib.decompress(self.blobs[index]).decode()
        return parse(text), self.labels[index]


def parse(text):
    table = []
    for row in csv.reader(io.StringIO(text)):
        values = [float(cell) for cell in row]
        centre = sum(values) / len(values)
        spread = (sum((value - centre) ** 2 for value in values) / len(values)) ** 0.5
        table.append([(value - centre) / (spread + 1e-6) for value in values])
    return torch.tensor(table)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Measurements(160), batch_size=16, num_workers=0, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(1920, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        for tables, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(tables), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
