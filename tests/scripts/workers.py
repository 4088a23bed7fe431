"""Two workers that cannot keep up; the wait for each batch is timed by hand."""
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
        return 480

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return blur(torch.rand(64, 1024, generator=generator)).mean(0), index % 10


def blur(picture):
    for shift in range(1, 13):
        picture = 0.5 * picture + 0.3 * picture.roll(shift, 1) + 0.2 * picture.sigmoid()
    return picture


def main():
    model = nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(), batch_size=8, num_workers=2)
    losses, waits, walls = [], [], []
    batches = iter(loader)
    for step in range(len(loader)):
        top = time.perf_counter()
        batch = next(batches)
        waits.append(time.perf_counter() - top)
        x, y = batch  # the batch before is freed here, which takes a while where it lies in shared memory
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        walls.append(time.perf_counter() - top)
    top = time.perf_counter()
    print(losses)
    walls[-1] += time.perf_counter() - top  # what is printed after the last step counts as logging
    if "PLANTED_OUT" in os.environ:
        with open(os.environ["PLANTED_OUT"], "w") as file:
            json.dump({"data_wait": waits, "step": walls}, file)


if __name__ == "__main__":
    main()
