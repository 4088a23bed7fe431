import torch
from old import train_loader
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other_loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
for (x,) in train_loader:
    loss = model(x.cuda(non_blocking=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
