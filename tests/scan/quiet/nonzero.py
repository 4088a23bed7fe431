import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class MaskedLoss(nn.Module):
    def forward(self, output, target):
        positive = target > 0
        order = output[:, 0].argsort()
        output = output.masked_fill(~positive, 0)[order]
        output = output.clone()
        output[target < 0] = 0
        rows = torch.arange(len(target), device=target.device)
        return torch.where(positive, output - target, 0.0)[rows].abs().mean()


model = nn.Linear(4, 1).to(device)
criterion = MaskedLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    labels = np.arange(8)
    kept = labels[labels > 3]
    host = torch.arange(8)
    some = host[host > 3].nonzero()
    output = model(torch.rand(8, 4).to(device))
    loss = criterion(output, torch.rand(8, 1).to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        print(output[output > 0].mean(), (output > 0).nonzero())
