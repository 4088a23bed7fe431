"""A step is taken in a branch that the call asks for, and another whatever is asked for."""

import torch


class Model:
    def __init__(self):
        self.net = torch.nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, x, training=True):
        loss = self.net(x).square().mean()
        if training:
            loss.backward()
            self.optimizer.step()
        return loss

    def adapt(self, x, harder=True):
        loss = self.net(x).square().mean()
        loss.backward()
        if harder:
            self.optimizer.step()
        self.optimizer.step()
        return loss


model = Model()
total = 0
for step in range(100):
    total += model.update(torch.randn(8, 4, device="cuda"), training=True).detach().cpu()  # finds: cpu-copy
for step in range(100):
    total += model.adapt(torch.randn(8, 4, device="cuda"), harder=False).detach().cpu()  # finds: cpu-copy
