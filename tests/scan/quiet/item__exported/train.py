import torch
from losses import Plain
from torch import nn

model = nn.Linear(4, 1).cuda()
criterion = Plain()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if __name__ == "__main__":
    for step in range(20):
        loss = criterion(model(torch.randn(8, 4, device="cuda")))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
