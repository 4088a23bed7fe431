"""A program that keeps its workers from one epoch to the next."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    data = TensorDataset(torch.randn(32, 4), torch.arange(32))
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True, timeout=60)
    order = []
    for _ in range(3):
        for x, numbers in loader:
            model(x).sum().backward()
            order += numbers.tolist()
    print(json.dumps({"order": order, "drawn": torch.rand(1).item(), "gradient": model[0].weight.grad.tolist()}))


if __name__ == "__main__":
    main()
