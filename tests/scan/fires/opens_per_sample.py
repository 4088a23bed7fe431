import json

import h5py
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 8

    def __getitem__(self, index):
        with h5py.File(self.path, "r") as file:  # finds: opens-per-sample
            volume = file["volume"][index]
        table = pd.read_csv("labels.csv")  # finds: opens-per-sample
        with open(self.path) as stream:
            notes = json.load(stream)  # finds: opens-per-sample
        return volume, table.iloc[index], notes[index]


train_loader = DataLoader(Volumes("data.h5"), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
