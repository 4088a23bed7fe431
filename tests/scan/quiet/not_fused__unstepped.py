"""An optimizer of which the default takes no step."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--losses", default="triplet")
args = parser.parse_args()

model, centers = torch.nn.Linear(4, 1).cuda(), torch.nn.Linear(4, 1).cuda()
optimizer_center = torch.optim.SGD(centers.parameters(), lr=0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
scaler = torch.amp.GradScaler("cuda")
for step in range(20):
    loss = model(torch.randn(8, 4, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    if "center" in args.losses:
        scaler.step(optimizer_center)
    scaler.update()
