"""TensorBoard's writer may be called a logger."""

import torch
from torch.utils.tensorboard import SummaryWriter

logger = SummaryWriter()
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(4, 4, device="cuda")).mean()
    loss.backward()
    optimizer.step()
    logger.add_scalar("loss", loss, step)  # finds: log-per-step
