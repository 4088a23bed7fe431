"""A framework's loop, which reads ahead and accumulates; its callback takes the time. Timed by hand, in the framework."""
import json
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from loopframe import Trainer


class Spread:
    """How many weights are small."""

    def on_batch_end(self, trainer):
        self.small = 0
        for value in trainer.model[0].weight.detach().flatten()[:120000].tolist():
            if abs(value) < 0.01:
                self.small += 1


def loss(model, batch):
    x, y = batch
    value = nn.functional.mse_loss(model(x), y)
    losses.append(value.detach())
    return value


torch.manual_seed(0)
torch.set_num_threads(1)
losses, spread = [], Spread()
data = TensorDataset(torch.randn(336, 256), torch.randn(336, 1))
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
trainer = Trainer(net, torch.optim.Adam(net.parameters()), loss, [spread], accumulate=3)
trainer.fit(DataLoader(data, batch_size=8), epochs=2)
print([value.item() for value in losses], spread.small)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump(trainer.spent, file)
