import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        grid = torch.linspace(0, 1, 4).to(x.device)  # finds: cpu-tensor-in-step
        places = torch.arange(x.shape[1]).float().to(x.device)  # finds: cpu-tensor-in-step
        scale = torch.tensor([1.0, 2.0, 3.0, 4.0]).to(x.device)  # finds: cpu-tensor-in-step
        shift = torch.tensor([0.5, 0.5, 0.5, 0.5], device=x.device)  # finds: cpu-tensor-in-step
        bias = x.new_tensor([0.0, 0.0, 0.0, 1.0])  # finds: cpu-tensor-in-step
        mask = np.ones(4, np.float32)
        mask[2:] = 0
        mask = torch.from_numpy(mask).to(x.device)  # finds: cpu-tensor-in-step
        return self.inner(x * mask + grid + places + bias) * scale + shift


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(5):
    x = torch.full((8, 4), 0.5 + step, device=device)
    goal = torch.zeros(8, 4).to(device)  # finds: cpu-tensor-in-step
    ones = torch.ones(8, 1,).unsqueeze(1).to(device)  # finds: cpu-tensor-in-step
    loss = (model(x) - goal).square().mean() * ones.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")
