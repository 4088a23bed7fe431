"""Smooths the gradients' history in Python, which takes most, and logs every layer's gradient now and then, which takes less."""
import logging
import sys

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s:%(name)s:%(message)s")
logger = logging.getLogger("norms")


def smooth(history, weight=0.9):
    """An exponential mean over all that has been seen, from the start."""
    mean = 0.0
    for value in history:
        mean = weight * mean + (1 - weight) * value
    return mean


class GradientHistory:
    def __init__(self, parameters, keep=2500):
        self.parameters = list(parameters)
        self.keep = keep
        self.values = [[0.0] * keep for _ in self.parameters]

    def update(self):
        for values, parameter in zip(self.values, self.parameters):
            values.append(parameter.grad.norm().item())
            del values[: -self.keep]
        return [smooth(values) for values in self.values]


def log_norms(step, names, parameters, smoothed):
    for name, parameter, value in zip(names, parameters, smoothed):
        logger.info("step %d layer %s smoothed gradient norm %.6f gradient %s", step, name, value, parameter.grad)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [layer for _ in range(9) for layer in (nn.Linear(32, 32), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    names = [name for name, _ in model.named_parameters()]
    history = GradientHistory(model.parameters())
    for step in range(80):
        x = torch.randn(16, 32)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        loss.backward()
        optimizer.step()
        smoothed = history.update()
        if step % 5 == 0:
            log_norms(step, names, history.parameters, smoothed)
    print(loss.item())


if __name__ == "__main__":
    main()
