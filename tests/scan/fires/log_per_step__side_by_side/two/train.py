"""A board of the project's own, which does nothing unless its settings say so."""

import torch
import yaml
from board import Board
from torch import nn

if __name__ == "__main__":
    config = yaml.safe_load(open("configs/base.yaml"))
    writer = Board("runs", config["board"])
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(200):
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
