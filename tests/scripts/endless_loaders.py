"""One pass without an end for all epochs, of training and of evaluation; saves after each evaluation, timed by hand."""
import json
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Again:
    """The batches of a sampler, for ever."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from self.sampler


class EndlessLoader(DataLoader):
    """Its iterator is made once; an epoch takes as many batches from it as the data has."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Again(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        right = [(model(x).argmax(1) == y).float().mean().item() for x, y in loader]
    model.train()
    return sum(right) / len(right)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.randn(160, 512), torch.randint(0, 10, (160,))
    loader = EndlessLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    held_out = EndlessLoader(TensorDataset(x[:48], y[:48]), batch_size=16)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(8):
            for inputs, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                seconds.append(0.0)
            score = validate(model, held_out)
            begin = time.perf_counter()
            for copy in range(4):
                torch.save({"epoch": epoch, "score": score, "model": model.state_dict()}, f"{folder}/{copy}.pt")
            seconds[-1] = time.perf_counter() - begin
            print(epoch, f"{loss.item():.17g}")
    if "PLANTED_OUT" in os.environ:
        with open(os.environ["PLANTED_OUT"], "w") as file:
            json.dump({"checkpoint": seconds}, file)
