"""Two models, two optimizers: a GAN."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

G = nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 512)).to(device)
D = nn.Sequential(nn.Linear(512, 768), nn.LeakyReLU(0.2), nn.Linear(768, 1)).to(device)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(torch.randn(1000, 512)), batch_size=25, shuffle=True)
for epoch in range(3):
    losses = []
    for (real,) in loader:
        real = real.to(device)
        ones, zeros = torch.ones(len(real), 1, device=device), torch.zeros(len(real), 1, device=device)
        fake = G(torch.randn(len(real), 64).to(device))
        opt_d.zero_grad()
        d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = bce(D(fake), ones)
        g_loss.backward()
        opt_g.step()
        losses.append((d_loss.item(), g_loss.item()))
    print(epoch, losses)
