"""Prints every gradient's statistics as JSON after each step."""
import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def report(step, model, loss):
    record = {"step": step, "loss": loss}
    for name, parameter in model.named_parameters():
        record[name] = [round(value, 6) for value in parameter.grad.flatten()[:2000].tolist()]
    for line in json.dumps(record, indent=1).splitlines():
        sys.stdout.write(line + "\n")


model = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.randn(1120, 48)
loader = DataLoader(TensorDataset(x, x.mean(1, keepdim=True)), batch_size=16)
for step, (inputs, targets) in enumerate(loader):
    optimizer.zero_grad()
    loss = (model(inputs) - targets).pow(2).mean()
    loss.backward()
    optimizer.step()
    report(step, model, loss.item())
