"""Half precision in a model of many small layers: the casts of weights and activations cost more than the products."""

import torch
from loop import BY_HAND, train
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*(layer for _ in range(24) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())))
data = [(torch.randn(32, 64), torch.randn(32, 64)) for _ in range(400)]
train(model, data, torch.optim.SGD(model.parameters(), lr=0.01), autocast=BY_HAND)
