"""Which of two optimizers is made can't be told: whoever calls it decides, or a file that is not there."""

import json
import sys

import torch

settings = json.load(open(sys.argv[1]))
model = torch.nn.Linear(4, 4).cuda()
if settings["kind"] == "adam":
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
elif settings["kind"] == "sgd":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(4, 4, device="cuda")).mean()
    loss.backward()
    optimizer.step()
