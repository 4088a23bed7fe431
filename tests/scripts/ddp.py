"""DistributedDataParallel over gloo, two ranks."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(6400, 256), torch.randn(6400, 1))
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=80, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    if dist.get_rank() == 0:
        print(losses)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
