import logging
import sys

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x):
        if x.shape[1] != 4:
            print("a strange shape", x.shape)
        return self.inner(x)

    def log(self, name, value):
        """A framework gathers these."""

    def training_step(self, batch):
        self.log("loss", 0.0)


def say(*words):
    print(*words)


model = Module()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for setting in (0.1, 0.2):
    print("setting", setting)
    for epoch in range(2):
        print("epoch", epoch)
        for step in range(20):
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 10 == 0:
                print("step", step)
                logger.info("loss %s", loss.item())
            if loss.isnan():
                print("not a number: stopped")
                sys.exit(1)
            done = {"episode": step} if step == 3 else {}
            if "episode" in done:
                print("an episode is over")
            try:
                value = 1 / step
            except ZeroDivisionError:
                print("no")
            logger.debug("step %d", step)
            print(f"step {step}", end="\r")
        logger.info("end of epoch")
