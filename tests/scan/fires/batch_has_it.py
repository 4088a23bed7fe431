import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        points = np.random.default_rng(index).integers(0, 16, (4, 2))
        sample = {"points": points, "maps": np.zeros((4, 16, 16), np.float32)}
        for k, (x, y) in enumerate(points):
            sample["maps"][k, y, x] = 1
        sample["offsets"] = points / 16
        return sample


def draw(points, size):
    maps = torch.zeros(*points.shape[:2], size, size)
    offsets = torch.zeros(points.shape)
    for i, one in enumerate(points.tolist()):
        for k, (x, y) in enumerate(one):
            maps[i, k, y, x] = 1
            offsets[i, k] = torch.tensor([x / size, y / size])
    return maps, offsets


train_loader = DataLoader(Points(), batch_size=8, shuffle=True, num_workers=4, persistent_workers=True)
model = nn.Linear(8, 4 * 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in train_loader:
        points = batch["points"]
        maps, offsets = draw(points, 16)  # finds: batch-has-it
        made = model(points.float().flatten(1))
        loss = (made - maps.flatten(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
