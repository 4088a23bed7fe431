"""Of several optimizers in a table the one is named that the default takes."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="sgd")
args = parser.parse_args()
kind = args.kind
model = torch.nn.Linear(4, 4).cuda()
optimizer = {
    "adam": torch.optim.Adam(model.parameters(), lr=0.1),
    "sgd": torch.optim.SGD(model.parameters(), lr=0.1),  # finds: not-fused
}[kind]
for step in range(20):
    loss = model(torch.randn(4, 4, device="cuda")).mean()
    loss.backward()
    optimizer.step()
