import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        points = np.random.default_rng(index).integers(0, 16, (4, 2))
        return {"points": points, "scale": np.float32(index), "weights": np.ones(4, np.float32)}


def draw(points, size):
    return torch.nn.functional.one_hot(points.prod(-1), size * size).float()


def scaled(points, by):
    return points / by


def prepare(batch, size):
    return batch["points"] / size, batch["scale"] / size


def weigh(found):
    return found.softmax(-1)


train_loader = DataLoader(Points(), batch_size=8, shuffle=True, num_workers=4, persistent_workers=True)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in train_loader:
        maps = draw(batch["points"], 16)  # the batch has none
        points, scale = prepare(batch, 16)  # of what they stand for
        points = scaled(points, 2)  # likewise
        found = model(points.flatten(1).float())
        weights = weigh(found)  # of what the model has made
        loss = (found * weights).mean() + maps.mean() * 0 + scale.mean() * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
