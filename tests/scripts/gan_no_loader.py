"""A GAN without a loader, five critic steps for one of the generator."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)

G = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 256))
D = nn.Sequential(nn.Linear(256, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=5e-5)
opt_d = torch.optim.RMSprop(D.parameters(), lr=5e-5)
for round in range(30):
    for _ in range(5):
        real = torch.randn(160, 256)
        loss = D(G(torch.randn(160, 32)).detach()).mean() - D(real).mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(160, 32))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    print(f"{loss.item():.17g} {g_loss.item():.17g}")
