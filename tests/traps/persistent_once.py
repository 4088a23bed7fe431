"""Workers kept for the next epoch, where there is only one."""

import torch
from loop import BY_HAND, train
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(1600, 256), torch.randn(1600, 256))
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=1, persistent_workers=BY_HAND)
model = nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))))
train(model, loader, torch.optim.SGD(model.parameters(), lr=0.01))
