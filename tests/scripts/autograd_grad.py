"""Gradients by torch.autograd.grad only."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

net = nn.Sequential(nn.Linear(2, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 1)).to(device)
parameters = list(net.parameters())
losses = []
for step in range(90):
    points = torch.rand(96, 2).to(device)
    loss = (net(points) - points.prod(1, keepdim=True)).square().mean()
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for p, g in zip(parameters, gradients):
            p.sub_(g, alpha=0.05)
    losses.append(loss.item())
print(losses)
