"""One point cloud a step: without the loader's dimension, its points look like a batch of samples."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

loader = DataLoader(TensorDataset(torch.randn(40, 256, 3), torch.randn(40, 256, 1)), batch_size=1)
model = nn.Sequential(nn.Linear(3, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for points, target in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(points[0].to(device)), target[0].to(device))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
