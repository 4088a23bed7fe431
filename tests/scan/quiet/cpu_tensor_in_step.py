import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.start = torch.zeros(4).to(device)

    def forward(self, x, state=None):
        grid = torch.linspace(0, 1, 4, device=x.device).to(x.dtype)
        zeros = torch.zeros_like(x).to(x.device)
        if state is None:
            state = torch.tensor(0.0, device=x.device)
        return self.inner(x + grid + zeros + state) * self.scale


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
storage = torch.zeros(20, 4).to(device)
for step in range(5):
    observed = np.full((8, 4), 0.5 + step, np.float32)
    x = torch.from_numpy(observed).to(device)
    rewards = torch.tensor(observed).to(device)
    table = torch.arange(8).to("cpu")
    kind = torch.ones(3).to(torch.float16)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        print(torch.zeros(3).to(device))
