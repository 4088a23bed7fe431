import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x, mask):
        assert x.max() <= 10  # finds: tensor-truth
        x = self.inner(x)
        if not mask.any():  # finds: tensor-truth
            return x
        return x * mask


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = 0.0
for step in range(20):
    loss = model(torch.rand(8, 4).to(device), torch.ones(8, 1).to(device)).square().mean()
    if torch.isnan(loss):  # finds: tensor-truth
        break
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm > 100:  # finds: tensor-truth
        print("large")
    optimizer.step()
    optimizer.zero_grad()
    total = float(loss.detach())  # finds: tensor-truth
    best = max(loss.detach(), 1)  # finds: tensor-truth
    is_good = loss < 1
    while is_good and step < 0:  # finds: tensor-truth
        pass
