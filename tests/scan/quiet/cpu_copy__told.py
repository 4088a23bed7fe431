"""The same method evaluates where it is told to, or where gradients are spared."""

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


def score(model, batches):
    return [model.update(x.cuda(), training=False).cpu() for x in batches]


def compare(model, batches):
    total = 0
    for x in batches:
        total += model.update(x.cuda(), False).cpu()
        with torch.no_grad():
            loss = model.update(x.cuda())
        total -= loss.cpu()
    return total


model = Model()
for step in range(100):
    model.update(torch.randn(8, 4, device="cuda"))
print(score(model, torch.randn(9, 8, 4)), compare(model, torch.randn(9, 8, 4)))
