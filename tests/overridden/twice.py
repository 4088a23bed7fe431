"""Two passes over one loader at the same time, and a pass that is left early; workers are not kept."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    twice = DataLoader(TensorDataset(torch.arange(32)), batch_size=4, num_workers=1)
    left = DataLoader(TensorDataset(torch.arange(32)), batch_size=4, num_workers=1)
    order, pids = [], set()
    for _ in range(2):
        for (a,), (b,) in zip(twice, twice, strict=False):
            model((a + b).float()).sum().backward()
            order += [a.tolist(), b.tolist()]
    for _ in range(3):
        for step, (a,) in enumerate(passing := iter(left)):
            model(a.float()).sum().backward()
            order += [a.tolist()]
            pids.add(passing._workers[0].pid)
            if step == 4:
                break
        del passing
    print(json.dumps({"order": order, "workers": len(pids)}))


if __name__ == "__main__":
    main()
