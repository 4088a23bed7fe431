import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(dataset, shuffle=True):
    model(x).mean().backward()
    optimizer.step()
