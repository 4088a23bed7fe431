"""DistributedDataParallel with gradients that are large beside the work of a step."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Recommender(nn.Module):
    """Wide layers, few samples."""

    def __init__(self, width=1024):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.score(x)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(480, 1024), torch.randn(480, 1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DistributedDataParallel(Recommender())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
