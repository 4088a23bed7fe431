"""What is set further down in a loop is asked for in the next turn; what was set above is a tensor as it becomes one."""

import torch

from somewhere import targets

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    if step and (worst > 3).any():  # asked for only where there was a step before
        break
    if (worst > 9).any():  # finds: tensor-truth
        break
    label = targets(step)
    if (label > 0).all():  # finds: tensor-truth
        continue
    label = torch.clamp(label.to("cuda"), max=1)
    loss = (model(torch.randn(4, 4, device="cuda")) - label).square().mean()
    worst = loss.detach()
    loss.backward()
    optimizer.step()
