"""A model's forward raises in the middle of training."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 80:
            x = x[:, :200]
        return self.body(x)


loader = DataLoader(TensorDataset(torch.randn(9600, 256), torch.randn(9600, 1)), batch_size=80)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.17g}")
