"""Asked for workers on the command line and by default; the loader has its own idea, as has the thread count."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
parser = argparse.ArgumentParser()
parser.add_argument("-j", "--workers", type=int, default=0)
parser.add_argument("--prefetch-factor", type=int, default=6)
parser.add_argument("--token", default="hf_0123456789")
parser.add_argument("--amp", action="store_true")
arguments = parser.parse_args()

data = TensorDataset(torch.randn(600, 64), torch.randn(600, 1))
loader = DataLoader(data, batch_size=12, num_workers=1)
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(8)], nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
