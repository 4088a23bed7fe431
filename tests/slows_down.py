"""Half-way it begins to keep a history, and to look through it in every step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = 400


def main():
    loader = DataLoader(TensorDataset(torch.randn(STEPS * 64, 256)), batch_size=64)
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for step, (x,) in enumerate(loader, 1):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= STEPS // 2:
            history = [float(i * 7919 % 10_007) for i in range(20_000)]
            history = sorted(history, key=lambda value: -value)[:10]


if __name__ == "__main__":
    main()
