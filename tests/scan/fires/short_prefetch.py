import torch
from torch.utils.data import DataLoader

train_loader = DataLoader(dataset, shuffle=True, num_workers=4, prefetch_factor=1)  # finds: short-prefetch
val_loader = DataLoader(dataset, num_workers=4, prefetch_factor=1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x).mean().backward()
    optimizer.step()
