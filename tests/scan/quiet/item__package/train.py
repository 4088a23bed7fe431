import torch
from parts import Sampler
from torch import nn

model = (nn.Linear(4, 1)).cuda()


def eval(model):
    sampler = Sampler(model).cuda()
    with torch.no_grad():
        return sampler(torch.randn(8, 4, device="cuda"))


if __name__ == "__main__":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    eval(model)
