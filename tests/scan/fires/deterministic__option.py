from dataclasses import dataclass

import torch
import tyro
from torch import nn


@dataclass
class Args:
    torch_deterministic: bool = True


args = tyro.cli(Args)
torch.use_deterministic_algorithms(args.torch_deterministic)  # finds: deterministic
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
