"""Gradients so small that float16 would lose them, a parameter that no model has, and a penalty on the weights."""

import json

import torch
from torch import nn

SMALL = 1e-6


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    kinds = set()
    model[0].register_forward_hook(lambda module, inputs, output: kinds.add(str(output.dtype)))
    temperature = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([*model.parameters(), temperature], lr=0.01)
    x, y = torch.randn(64, 8), torch.randn(64, 1)
    norms = []
    for _ in range(4):
        optimizer.zero_grad()
        error = (model(x) - y).square().mean() * temperature
        (SMALL * (error + 0.1 * model[0].weight.square().sum())).backward()
        kept = nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # far from it: it only tells the norm
        norms.append([kept.item() / SMALL, temperature.grad.item() / SMALL, model[2].bias.grad.item() / SMALL])
        optimizer.step()
    print(json.dumps({"norms": norms, "kinds": sorted(kinds), "compiled": model._compiled_call_impl is not None}))


if __name__ == "__main__":
    main()
