import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train_one(x):
    optimizer.zero_grad(set_to_none=False)  # finds: zero-grad-keeps
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()


for step in range(5):
    train_one(torch.randn(8, 4))
for step in range(5):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()  # finds: zero-grad-keeps
    model(torch.randn(8, 4)).square().mean().backward()
    for _, p in model.named_parameters():
        p.data -= 0.1 * p.grad
        p.grad.data.zero_()  # finds: zero-grad-keeps
