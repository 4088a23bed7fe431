import copy

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
target = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for p in target.parameters():
    p.data.mul_(0.5)
for step in range(5):
    model(torch.randn(8, 4, device=device)).square().mean().backward()
    norms = []
    for name, p in model.named_parameters():
        norms.append(p.grad.norm())
        p.requires_grad_(True)
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        for slow, fast in zip(target.parameters(), model.parameters()):
            slow.data.copy_(fast.data)
    torch._foreach_lerp_(list(target.parameters()), list(model.parameters()), 0.01) if step < 0 else None
