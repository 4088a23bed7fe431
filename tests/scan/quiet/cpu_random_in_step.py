import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fixed = torch.randn(8, 4).to(device)
for step in range(5):
    noise = torch.randn(8, 4, device=device)
    order = torch.randperm(8)
    x = fixed + torch.randn_like(fixed).to(device) + noise.to(torch.float32)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        print(model(torch.randn(1, 4).to(device)))
