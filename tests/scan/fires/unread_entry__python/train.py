import runpy
from pathlib import Path

import torch
from torch import nn

cfg = runpy.run_path(str(Path(__file__).with_name("configs") / "tiny.py"))
model = nn.Linear(cfg["model"]["inputs"], cfg["model"]["outputs"])
optimizer = torch.optim.SGD(model.parameters(), lr=cfg["optimizer"]["lr"])
for step in range(cfg["runner"]["max_iters"]):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
