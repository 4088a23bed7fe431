"""Batches are tensors when they come."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Meshes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return np.zeros(4)


def collate(samples):
    return torch.from_numpy(np.array(samples))


train_loader = DataLoader(Meshes(), shuffle=True, num_workers=1, collate_fn=collate)  # finds: no-pin
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
