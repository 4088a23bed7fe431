"""The dataset augments in Python, in the training process; the wait for each batch is timed by hand."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pictures(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        picture = torch.rand(32 * 32, generator=generator).tolist()
        return torch.tensor(self.sharpen(picture)), index % 10

    def sharpen(self, picture):
        for _ in range(20):
            picture = [0.5 * a + 0.3 * b + 0.2 for a, b in zip(picture, picture[1:] + picture[:1])]
        return picture


model = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(Pictures(), batch_size=8)
losses, waits, walls = [], [], []

for epoch in range(4):
    batches = iter(loader)
    for _ in range(len(loader)):
        top = time.perf_counter()
        x, y = next(batches)
        waits.append(time.perf_counter() - top)
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        walls.append(time.perf_counter() - top)
print(losses)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"data_wait": waits, "step": walls}, file)
