"""A model of repeated blocks that draw random numbers: how often each block is computed, and in what.

Arguments: `own`, for a program that recomputes its blocks itself; the first two as a sequence.
"""

import json
import sys
import tempfile

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

STEPS = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8))
        self.calls = 0

    def forward(self, x, *, scale):
        self.calls += 1
        return x + scale * self.layers(x)


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.calls = nn.BatchNorm1d(8), 0

    def forward(self, x):
        self.calls += 1
        return self.norm(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.counted = nn.Sequential(*(Counted() for _ in range(3)))
        self.last = nn.Linear(8, 1)

    def forward(self, x, recomputes):
        for block in self.blocks[recomputes * 2 :]:
            if recomputes:
                x = checkpoint(block, x, scale=0.5, use_reentrant=False, preserve_rng_state=True)
            else:
                x = block(x, scale=0.5)
        if recomputes:
            x = checkpoint_sequential([lambda y: self.blocks[0](y, scale=0.5)] * 2, 2, x, use_reentrant=True)
        return self.last(self.counted(x))


def main(recomputes=False):
    torch.set_num_threads(1)  # else how a sum is split depends on the machine's load
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 8), recomputes).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with tempfile.TemporaryFile() as file:
            torch.save(model, file)  # whole: nothing in it that cannot be
    return {
        "losses": losses,
        "calls": [part.calls for part in (*model.blocks, *model.counted)],
        "counted": int(model.counted[0].norm.num_batches_tracked),
        "compiled": [part._compiled_call_impl is not None for part in (model, *model.blocks, model.last)],
        "drawn": torch.rand(1).item(),
    }


if __name__ == "__main__":
    print(json.dumps(main("own" in sys.argv)))
