"""It is given as many GPUs as its settings say: one."""

import json

import torch
from torch import nn

config = json.load(open("config.json"))


def prepare(n_gpu):
    return torch.device("cuda:0"), list(range(n_gpu))


device, gpus = prepare(config["n_gpu"])
model = nn.DataParallel(nn.Linear(4, 1), device_ids=gpus).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
