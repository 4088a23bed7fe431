"""What goes through the dataset asks it for something, and tells it nothing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(4)

    def choose(self):
        return torch.randint(9, (64,))


class Batches:
    def __init__(self, dataset, workers):
        self.dataset = dataset
        self.train_loader = DataLoader(dataset, shuffle=True, num_workers=workers)  # finds: no-persistent

    def __iter__(self):
        self.corner = self.dataset.choose()
        return (x.cuda() for x in self.train_loader)


batches = Batches(Crops(), workers=4)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in batches:
        model(x).mean().backward()
        optimizer.step()
