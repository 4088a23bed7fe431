"""Batches are objects that can only be moved."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Padded:
    def __init__(self, values):
        self.values = values

    def to(self, device):
        return Padded(self.values.to(device))


class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(4)


def padded(samples):
    return Padded(torch.stack(samples))


def collate(samples):
    return padded(samples)


train_loader = DataLoader(Pictures(), shuffle=True, num_workers=1, collate_fn=collate)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in torch.randn(9, 8, 4):
        loss = model(x.to(device)).square().mean()
        loss.backward()
        optimizer.step()
print(len(train_loader), "loss", loss.item())
