import json

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, path, paths):
        self.path, self.paths, self.file = path, paths, None
        with open(path) as stream:
            self.notes = json.load(stream)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        path = self.paths[index]
        with h5py.File(path, "r") as own:
            volume = own["volume"][:]
        with open(self.paths[index]) as stream:
            notes = json.load(stream)
        return self.file["volume"][index], volume, notes, np.load(f"{self.path}/{index}.npy")


class Folder:
    def __init__(self, path):
        self.path = path

    def load(self):
        return json.load(open(self.path))


train_loader = DataLoader(Volumes("data.h5", []), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
