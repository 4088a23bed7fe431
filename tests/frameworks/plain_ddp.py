"""A plain DDP script for torchrun, on gloo."""

import timers
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.layers(x)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(64 * 60 * 2, 128)
    data = TensorDataset(x, x[:, :10].argmax(1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=1)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters())
    timers.watch(torch.Tensor, "backward", "backward")
    timers.watch(torch.optim.AdamW, "step", "optimizer")
    timers.watch(torch.optim.AdamW, "zero_grad", "optimizer")
    timers.watch(DistributedDataParallel, "forward", "forward")
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if rank == 0:
            torch.save(model.module.state_dict(), "model.pt")
    timers.stop()
    if rank == 0:
        print("losses", " ".join(f"{loss:.9f}" for loss in losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
