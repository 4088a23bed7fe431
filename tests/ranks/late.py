"""Ranks under DDP of which one is late: in its data, in its model, or because it writes a log."""

import json
import logging
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

KIND, LATE = sys.argv[1], int(sys.argv[2])
STEPS, BATCH, WIDTH = 60, 8, 128


class Signals(Dataset):
    def __init__(self, is_slow):
        self.is_slow = is_slow

    def __len__(self):
        return STEPS * BATCH * dist.get_world_size()

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        signal = torch.randn(32, WIDTH, generator=generator)
        return self.denoise(signal) if self.is_slow else signal

    def denoise(self, signal):
        for _ in range(6):
            signal = torch.fft.irfft(torch.fft.rfft(signal.sort(dim=1).values), n=WIDTH)
        return signal


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, WIDTH))
        self.repeats = 1

    def forward(self, x):
        for _ in range(self.repeats):
            x = self.layers(x)
        return x


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    is_late = dist.get_rank() == LATE
    data = Signals(is_slow=is_late and KIND == "data")
    loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data, seed=1))
    network = Model()
    network.repeats = 12 if is_late and KIND == "compute" else 1
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.set_printoptions(threshold=10_000)
    logging.basicConfig(filename="/dev/null", level=logging.INFO)
    losses = []
    for x in loader:
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if is_late and KIND == "logging":
            logging.info("weights %s", network.layers[0].weight[:8])
    if dist.get_rank() == 0:
        print(json.dumps(losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
