"""A captured training step replayed, on a side stream: nothing of ours may enter the capture."""
import json, os, time
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(10)], nn.Linear(256, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(64, 256, device="cuda")
y = torch.randn(64, 1, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_loss = nn.functional.mse_loss(model(x), y)
    static_loss.backward()
    optimizer.step()
losses = []
for i in range(200):
    x.copy_(torch.randn(64, 256))
    graph.replay()
    if i % 20 == 0:
        losses.append(static_loss.item())
print(repr(losses))
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
