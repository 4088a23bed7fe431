import torch
from torch import nn

torch.backends.cudnn.deterministic = True
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
