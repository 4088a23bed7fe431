"""A loop over optimizers is part of a step, also one by their numbers."""

import torch

model = torch.nn.Linear(4, 1)
optimizers = [torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()]
for step in range(20):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    for number in range(len(optimizers)):
        optimizers[number].step()
    print("loss", float(loss))  # finds: log-per-step
