import torch
from torch import nn


def seed_everything(seed):
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True  # finds: deterministic
    torch.backends.cudnn.benchmark = False


seed_everything(1)
model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 32, 32).cuda()).mean().backward()
    optimizer.step()
