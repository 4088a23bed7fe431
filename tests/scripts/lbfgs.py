"""LBFGS: forward and backward run inside optimizer.step, several times."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

x, y = torch.randn(1024, 256).to(device), torch.randn(1024, 1).to(device)
model = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)).to(device)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=8, history_size=8)
losses = []


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(150):
    losses.append(optimizer.step(closure).item())
print(losses)
