"""A program that evaluates between its passes, and tells which samples each batch had; its argument says of what kind.

What its workers could go on with meanwhile depends on who draws the order, from what, and what is drawn in between.
"""

import json
import random
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler, SubsetRandomSampler, TensorDataset

KIND = sys.argv[1]


class Numbered(TensorDataset):
    def __getitem__(self, index):
        return self.tensors[0][index], index


class Counting(Sampler):
    """Each pass is the next epoch."""

    def __init__(self, size):
        self.size, self.epoch = size, 0

    def __len__(self):
        return self.size

    def __iter__(self):
        order = np.random.default_rng(self.epoch).permutation(self.size)
        self.epoch += 1
        yield from order.tolist()


class Shuffling(Counting):
    """Its list is shuffled anew, in place, from where it was."""

    def __init__(self, size):
        super().__init__(size)
        self.order = list(range(size))

    def __iter__(self):
        (np.random if KIND == "numpy" else random).shuffle(self.order)
        yield from self.order


class Hidden(Counting):
    """Goes by something of its own."""

    def __init__(self, size):
        super().__init__(size)
        self.drawn = {"numbers": iter(range(1000))}

    def __iter__(self):
        first = next(self.drawn["numbers"])
        yield from [(first + index) % self.size for index in range(self.size)]


def make_loader(data):
    own, size = torch.Generator().manual_seed(3), len(data)
    kinds = {
        "spread": lambda: {"sampler": DistributedSampler(data, num_replicas=2, rank=1)},
        "subset": lambda: {"sampler": SubsetRandomSampler(list(range(0, size, 3)))},
        "own": lambda: {"sampler": RandomSampler(data, generator=own)},
        "stream": lambda: {"shuffle": True, "generator": own},
        "again": lambda: {"sampler": RandomSampler(data, replacement=True, num_samples=size + 8, generator=own)},
        "kept": lambda: {"shuffle": True, "persistent_workers": True},
        "few": lambda: {"sampler": SubsetRandomSampler(list(range(6)))},
        "counts": lambda: {"sampler": Counting(size)},
        "shuffles": lambda: {"sampler": Shuffling(size)},
        "numpy": lambda: {"sampler": Shuffling(size)},
        "reversed": lambda: {"sampler": SubsetRandomSampler(list(range(size)))},
        "hidden": lambda: {"sampler": Hidden(size)},
    }
    return DataLoader(data, batch_size=4, num_workers=2, timeout=60, **kinds.get(KIND, lambda: {"shuffle": True})())


def evaluate(model, held_out):
    model.eval()
    with torch.no_grad():
        total = sum(model(x).sum().item() for x, _ in held_out)
    model.train()
    return total


def main():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    data = Numbered(torch.randn(32, 4))
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5 if KIND == "dropout" else 0.0))
    loader = make_loader(data)
    held_out = DataLoader(Numbered(torch.randn(8, 4)), batch_size=4, shuffle=KIND == "drawn")
    order, totals = [], []
    for epoch in range(6):
        if KIND == "spread":
            loader.sampler.set_epoch(epoch)
        if KIND == "seeded":
            torch.manual_seed(epoch)
        if KIND == "reversed":
            loader.sampler.indices.reverse()
        passing = iter(loader)
        for step, (x, numbers) in enumerate(passing):
            model(x).sum().backward()
            order.append(numbers.tolist())
            if KIND == "left" and epoch % 2 and step == 4:
                break
        if KIND == "asked again":
            order.append(list(passing))
        if KIND == "left":
            del passing
        totals.append(evaluate(model, held_out))
        if KIND == "varies":
            torch.rand(epoch + 1)
    drawn = [torch.rand(1).item(), random.random(), np.random.rand()]
    print(json.dumps({"order": order, "totals": totals, "drawn": drawn, "of": model[0].weight.grad.tolist()}))


if __name__ == "__main__":
    main()
