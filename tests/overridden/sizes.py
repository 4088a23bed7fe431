"""A program that plans a schedule by the number of its batches, and says what each of them was and did.

Arguments: samples of a batch, the learning rates of its two optimizers, and how much the first of them falls.
"""

import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbered(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(6, generator=generator), torch.tensor(index)


def main(size=4, rate=0.1, other_rate=0.01, fall=1.0):
    torch.set_num_threads(1)  # else how a sum is split depends on the machine's load
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    shift = nn.Parameter(torch.zeros(1))
    sgd = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    adam = torch.optim.AdamW([shift], lr=other_rate)
    data = Numbered()
    loader = DataLoader(data, batch_size=size, shuffle=True)
    validation = DataLoader(data, batch_size=8)
    planned = 2 * len(loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(sgd, lambda step: 1 - fall * step / planned)
    said = {"planned": planned, "sizes": [], "order": [], "rates": [], "other_rates": [], "losses": [], "evaluated": []}
    for _ in range(2):
        model.train()
        for x, numbers in loader:
            loss = (model(x) + shift - x.sum(1, keepdim=True)).square().mean()
            sgd.zero_grad()
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            sgd.step()
            adam.step()
            said["rates"].append(sgd.param_groups[0]["lr"])
            said["other_rates"].append(adam.param_groups[0]["lr"])
            schedule.step()
            said["sizes"].append(len(numbers))
            said["order"] += numbers.tolist()
            said["losses"].append(loss.item())
        model.eval()
        with torch.no_grad():
            said["evaluated"] += [len(x) for x, _ in validation]
    said["steps"] = adam.state[shift]["step"].item()
    return said


if __name__ == "__main__":
    print(json.dumps(main(*(int(sys.argv[1]), *map(float, sys.argv[2:])) if sys.argv[1:] else ())))
