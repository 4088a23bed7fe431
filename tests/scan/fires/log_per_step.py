import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Writer:
    def add_scalar(self, name, value, step):
        pass


def note(step, loss):
    logger.info("step %d: %s", step, loss)  # finds: log-per-step


def main(rank=0, total=10):
    writer = Writer()
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print("step", step)  # finds: log-per-step
        note(step, 0)
        if step > total:
            break
        if writer is not None:
            writer.add_scalar("loss", loss, step)  # finds: log-per-step
            writer.add_scalar("step", step, step)


main()
