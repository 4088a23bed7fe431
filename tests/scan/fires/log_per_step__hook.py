"""A hook that has a line for every step."""

import torch
from mmengine.hooks import Hook
from torch import nn


class Lines(Hook):
    def after_train_iter(self, runner, batch, data=None, outputs=None):
        if self.every_n_inner_iters(batch, 50):
            line = f"{batch}"
        elif self.end_of_epoch(runner.train_dataloader, batch):
            line = f"{batch}, the last"
        else:
            line = "one more"
        runner.logger.info(line)  # finds: log-per-step


hooks = [Lines()]
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    model(torch.randn(8, 4, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
