"""A derivative inside the loss (create_graph), then backward and an optimizer: one step each round."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

net = nn.Sequential(nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
losses = []
for step in range(80):
    t = torch.rand(400, 1).to(device).requires_grad_()
    u = net(t)
    slope = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    loss = (slope + u).square().mean() + (net(torch.zeros(1, 1, device=device)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
