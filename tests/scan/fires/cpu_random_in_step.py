import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def noisy(x):
    noise = 0.1 * torch.randn(x.shape)
    keep = torch.rand(x.shape[0], 1).to(x.device)  # finds: cpu-random-in-step
    return x + noise.to(x.device) * keep


for step in range(5):
    x = torch.ones(8, 4, device=device)
    t = torch.randint(0, 10, (8,)).long().to(device)  # finds: cpu-random-in-step
    loss = (model(noisy(x)) * t[:, None]).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
