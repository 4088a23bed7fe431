"""A framework that works inside the optimizer's closure; a callback there takes the time. Timed by hand, in the framework."""
import json
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from loopframe import ClosureTrainer


class Gradients:
    """How large the gradients are."""

    def on_after_backward(self, trainer):
        self.largest = 0.0
        for value in trainer.model[0].weight.grad.flatten()[:130000].tolist():
            if abs(value) > self.largest:
                self.largest = abs(value)


def loss(model, batch):
    x, y = batch
    value = nn.functional.mse_loss(model(x), y)
    losses.append(value.detach())
    return value


torch.manual_seed(0)
torch.set_num_threads(1)
losses, gradients = [], Gradients()
data = TensorDataset(torch.randn(480, 256), torch.randn(480, 1))
net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
trainer = ClosureTrainer(net, torch.optim.AdamW(net.parameters()), loss, [gradients])
trainer.fit(DataLoader(data, batch_size=8), epochs=1)
print([value.item() for value in losses], gradients.largest)
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"other": trainer.spent["other"]}, file)
