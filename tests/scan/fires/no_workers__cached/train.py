"""Samples are kept where the settings say; workers are for those in the host's memory."""

from types import SimpleNamespace

import torch
import yaml
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

args = SimpleNamespace(**yaml.safe_load(open("configs/base.yaml")))


class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.tensor(Image.open(f"{index}.png").getdata())


train_loader = DataLoader(  # finds: no-workers
    Pictures(),
    shuffle=True,
    num_workers=args.workers if args.cache_device == "cpu" else 0,
)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
