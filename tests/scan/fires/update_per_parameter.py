import copy

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Average:
    def __init__(self, model):
        self.state = copy.deepcopy(model)

    @torch.no_grad()
    def follow(self, model):
        values = model.state_dict()
        for name, value in self.state.state_dict().items():  # finds: update-per-parameter
            if value.dtype.is_floating_point:
                value *= 0.99
                value.add_(values[name], alpha=0.01)


other = Average(model)
for step in range(5):
    model(torch.randn(8, 4, device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    other.follow(model)
    for slow, fast in zip(average.parameters(), model.parameters()):  # finds: update-per-parameter
        slow.data.copy_(0.99 * slow.data + 0.01 * fast.data)
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.data.mul_(0.99).add_(fast.data, alpha=0.01)
for step in range(5):
    model(torch.randn(8, 4, device=device)).square().mean().backward()
    for p in model.parameters():  # finds: update-per-parameter
        p.data -= 0.1 * p.grad
    model.zero_grad()
