import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Kept(Dataset):
    def __init__(self, names, suffix=".cache"):
        self.names, self.suffix = names, suffix

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        kept = os.path.join("kept", f"{self.names[index]}{self.suffix}")
        if os.path.exists(kept):
            return np.load(kept)
        made = np.fromfile(self.names[index], np.float32)
        np.save(kept, made)  # finds: cache-never-read
        return made


train_loader = DataLoader(Kept(["a"]), shuffle=True, num_workers=4, persistent_workers=True)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
