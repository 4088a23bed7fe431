import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

train_loader = DataLoader(train_dataset, shuffle=True, num_workers=4)
for epoch in range(10):
    train_dataset.set_epoch(epoch)
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
