"""A GAN without a loader, five critic steps for one of the generator."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

G = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 256)).to(device)
D = nn.Sequential(nn.Linear(256, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).to(device)
opt_g = torch.optim.RMSprop(G.parameters(), lr=5e-5)
opt_d = torch.optim.RMSprop(D.parameters(), lr=5e-5)
for round in range(30):
    for _ in range(5):
        real = torch.randn(160, 256).to(device)
        loss = D(G(torch.randn(160, 32).to(device)).detach()).mean() - D(real).mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(160, 32).to(device))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    print(f"{loss.item():.17g} {g_loss.item():.17g}")
