"""A model whose memory follows from its sizes, on the CPU; the windows are asked for by the script, early."""

import os
import time

import torch
from torch import nn

BATCH, STEPS, ASKED = 128, 60, 8
torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(64, 256)
        self.body = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
        self.head = nn.Linear(256, 1)
        self.register_buffer("scale", torch.ones(300))

    def forward(self, x):
        return self.head(self.body(self.stem(x))) * self.scale[0]


model = Net()
frozen = nn.Linear(10, 10).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
losses = []
for _ in range(STEPS):
    loss = model(torch.randn(BATCH, 64)).square().mean() + frozen(torch.ones(1, 10)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    losses.append(loss.item())
    folder = os.environ.get("FLOORIT_RECORD")
    if folder and len(losses) == 2:
        with open(os.path.join(folder, "window.own"), "w") as request:
            request.write(str(ASKED))
        os.replace(request.name, os.path.join(folder, "window"))
        time.sleep(1.5)  # what is asked is looked for every half second, the process's memory every second
print(repr(losses))
