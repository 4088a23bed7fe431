import torch
from torch import nn

model, judge = nn.Linear(4, 1), nn.Linear(1, 1)
optimizer = torch.optim.SGD([*model.parameters(), *judge.parameters()], lr=0.1)


class Twice:
    def first(self, x):
        self.out = model(x)
        self.out.mean().backward(retain_graph=True)

    def second(self):
        judge(self.out).mean().backward()


class Penalty:
    def step(self, x):
        loss = model(x).square().mean()
        grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
        sum(g.square().sum() for g in grads).backward(retain_graph=True)


twice, penalty = Twice(), Penalty()
for step in range(5):
    x = torch.randn(8, 4)
    twice.first(x)
    twice.second()
    penalty.step(x)
    optimizer.step()
    optimizer.zero_grad()
for step in range(5):
    out = model(torch.randn(8, 4))
    for loss in (out.mean(), out.square().mean()):
        loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
