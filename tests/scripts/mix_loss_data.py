"""A contrastive loss in Python loops takes most; a dataset that shuffles its features by hand takes less."""
import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Molecules(Dataset):
    """Chains of atoms; the order of neighbours is mixed for each look."""

    def __init__(self, count, atoms=64):
        generator = torch.Generator().manual_seed(0)
        self.chains = torch.rand(count, atoms, generator=generator)

    def __len__(self):
        return len(self.chains)

    def __getitem__(self, index):
        atoms = self.chains[index].tolist()
        for turn in range(5):
            atoms = [0.6 * a + 0.4 * b for a, b in zip(atoms, atoms[turn:] + atoms[:turn])]
        return torch.tensor(atoms), index % 6


def contrast(embedded, labels, margin=0.5):
    """Pairs of one kind shall be near, others far."""
    points, kinds = embedded.detach().tolist(), labels.tolist()
    near, far = [], []
    for i, a in enumerate(points):
        for j, b in enumerate(points[:i]):
            distance = sum((p - q) ** 2 for p, q in zip(a, b))
            if kinds[i] == kinds[j]:
                near.append((i, j))
            elif distance < margin:
                far.append((i, j))
    pull = sum((embedded[i] - embedded[j]).square().sum() for i, j in near[:6])
    push = sum((margin - (embedded[i] - embedded[j]).square().sum()).relu() for i, j in far[:6])
    return (pull + push) / len(points)


loader = DataLoader(Molecules(2880), batch_size=48, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
in_loss, in_data = [], []
batches = iter(loader)
for _ in range(len(loader)):
    begin = time.perf_counter()
    chains, kinds = next(batches)
    in_data.append(time.perf_counter() - begin)
    optimizer.zero_grad()
    embedded = model(chains)
    begin = time.perf_counter()
    loss = contrast(embedded, kinds)
    in_loss.append(time.perf_counter() - begin)
    loss.backward()
    optimizer.step()
print(loss.item())
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"loss": in_loss, "data_wait": in_data}, file)
