import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(4):
        model(torch.randn(8, 4)).mean().backward()
        optimizer.step()


with profile(activities=[ProfilerActivity.CPU]):  # finds: profiler-left-on
    train()
with torch.autograd.profiler.emit_nvtx():  # finds: profiler-left-on
    for step in range(4):
        model(torch.randn(8, 4)).mean().backward()
        optimizer.step()
