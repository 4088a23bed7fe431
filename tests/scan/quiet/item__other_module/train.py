import argparse

import flat
import waves
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="flat")
args = parser.parse_args()
models = {"flat": flat, "waves": waves}

model = models[args.model].Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
