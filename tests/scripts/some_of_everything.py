"""A program that does a little of everything besides its model, and too much of nothing."""

import io
import logging

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

WIDTH, STEPS = 384, 160
torch.manual_seed(0)
torch.set_num_threads(1)


class Signals(Dataset):
    """Whole batches, decorrelated as they are read."""

    def __init__(self, batches):
        self.raw = torch.randn(8, WIDTH, WIDTH)
        self.decorrelate = torch.linalg.qr(torch.randn(WIDTH, WIDTH))[0]
        self.batches = batches

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        return self.raw[index % 8] @ self.decorrelate


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(208, 192)
        self.second = nn.Sequential(nn.Linear(WIDTH, 208), nn.Tanh())

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return self.last(checkpoint(self.second, x, use_reentrant=False))


class Turned(torch.optim.Optimizer):
    """Descent in which the first layer's gradient is turned."""

    def __init__(self, parameters, turn, lr=1e-4):
        super().__init__(parameters, {"lr": lr})
        self.turn = turn

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for number, parameter in enumerate(group["params"]):
                direction = parameter.grad[:256] @ self.turn if number == 0 else parameter.grad
                parameter[: len(direction)].add_(direction, alpha=-group["lr"])


class Spectrum(logging.Handler):
    """Writes how a layer's rows relate."""

    def emit(self, record):
        weights = record.args[0].detach()
        related = weights @ weights.T
        record.args = (related.diagonal().mean().item(),)
        self.format(record)


def criterion(predicted, inputs):
    """Distance to a fixed mixture of the inputs."""
    return F.mse_loss(predicted, (inputs @ mixture)[:, :192])


def evaluate():
    model.eval()
    with torch.no_grad():
        worst = max(model(inputs).abs().amax().item() for inputs in held_out)
    model.train()
    return worst


log = logging.getLogger("signals")
log.propagate = False
log.addHandler(Spectrum())
log.setLevel(logging.INFO)
mixture = torch.randn(WIDTH, 320) / WIDTH
model = Model()
optimizer = Turned(model.parameters(), torch.eye(WIDTH))
moments = torch.zeros(224, WIDTH)
loader, held_out = DataLoader(Signals(STEPS), batch_size=None), list(torch.randn(3, WIDTH, WIDTH))
for step, inputs in enumerate(loader):
    loss = criterion(model(inputs), inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    moments += inputs[:, :224].T @ inputs
    log.info("rows %.3f", model.first.weight)
    if step % 4 == 1:
        kept = io.BytesIO()
        torch.save([model.state_dict(), moments, loader.dataset.raw[:5]], kept)
    if step % 7 == 6:
        worst = evaluate()
print(worst)
