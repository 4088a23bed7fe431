import glob
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __init__(self, folders):
        self.folders = folders

    def __len__(self):
        return len(self.folders)

    def __getitem__(self, index):
        names = os.listdir(self.folders[index])  # finds: lists-per-sample
        return names, glob.glob(self.folders[index] + "/*.jpg")  # finds: lists-per-sample


train_loader = DataLoader(Clips(["a"]), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
