"""Only where several GPUs are handed over, or where it is asked for."""

import torch
from settings import args
from torch import nn


class Trainer:
    def __init__(self, model, gpus=None):
        gpus = gpus or []
        self.model = model
        if len(gpus) > 1:
            self.model = nn.DataParallel(model, device_ids=gpus)
        if args.parallel and torch.cuda.device_count() > 1:
            self.model = nn.DataParallel(model)


trainer = Trainer(nn.Linear(4, 1).cuda())
optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.1)
for step in range(4):
    trainer.model(torch.randn(8, 4).cuda()).mean().backward()
    optimizer.step()
