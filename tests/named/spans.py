"""Names of its own in the loop, around a function, and in a loader's worker; it times each by itself."""

import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import floorit

torch.manual_seed(0)
torch.set_num_threads(1)
spent = {"assign": [], "inner": [], "model": []}


def work(size):
    return (torch.ones(size, size) @ torch.ones(size, size)).sum()


class Pictures(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        began = time.perf_counter()
        with floorit.span("mosaic"):
            work(450)
        return torch.randn(64), time.perf_counter() - began


@floorit.span("assign")
def assign():
    work(500)
    began = time.perf_counter()
    with floorit.span("inner"):
        work(600)
    spent["inner"].append(time.perf_counter() - began)


def main():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mosaic = []
    for _ in range(2):
        for x, seconds in DataLoader(Pictures(), batch_size=4, num_workers=1):
            mosaic += seconds.tolist()
            began = time.perf_counter()
            assign()
            spent["assign"].append(time.perf_counter() - began - spent["inner"][-1])
            began = time.perf_counter()
            with floorit.span("model"):
                loss = model(x).square().mean()
                work(450)
                loss.backward()
            spent["model"].append(time.perf_counter() - began)
            optimizer.step()
            optimizer.zero_grad()
    print(json.dumps({**spent, "mosaic": mosaic, "loss": loss.item()}))


if __name__ == "__main__":
    main()
