"""A module that a command line of its framework's trains."""

from lightning.pytorch import LightningModule
from lightning.pytorch.cli import LightningCLI
from torch import nn


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch).square().mean()
        loss.backward()
        print(loss.item())  # finds: item
        return loss


if __name__ == "__main__":
    LightningCLI(Model)
