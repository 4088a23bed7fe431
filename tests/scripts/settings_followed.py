"""JSON, TOML and arguments, all of them followed; some set late, one by an import that comes after torch's."""
import argparse
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

torch.manual_seed(0)
torch.set_num_threads(1)
CONFIGS = Path(__file__).parent / "configs"
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch", type=int, default=99)
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--torch-threads", type=int, default=1)
arguments = parser.parse_args()
settings = json.loads((CONFIGS / "followed.json").read_text())
with open(CONFIGS / "followed.toml", "rb") as file:
    settings |= tomllib.load(file)

torch.backends.cudnn.benchmark = settings["backends"]["cudnn"]["benchmark"]
data = TensorDataset(torch.randn(600, 3, 16, 16), torch.randn(600, 1))
how = {"num_workers": settings["data"]["dataloader_num_workers"], "persistent_workers": True}
loader = DataLoader(data, batch_size=arguments.batch, **how)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1))
if arguments.channels_last:
    model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), lr=settings["train"]["learning-rate"])
every = settings["train"]["gradient_accumulation_steps"]
losses = []
for epoch in range(2):
    for number, (x, y) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
print(losses)
