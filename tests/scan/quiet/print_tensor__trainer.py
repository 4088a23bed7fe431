"""What a trainer returns that was moved to the GPU as a whole is no tensor for that."""

import torch
from torch import nn


class Trainer(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train_step(self):
        loss = self.model(torch.randn(8, 4).cuda()).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer(nn.Linear(4, 1))
trainer = trainer.cuda()
for step in range(20):
    loss = trainer.train_step()
    print(f"loss: {loss}")
