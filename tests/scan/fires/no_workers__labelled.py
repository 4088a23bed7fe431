"""Few samples have labels, and their loader begins anew every few steps; the other one has many."""

import torch
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

images = datasets.CIFAR10("data", transform=transforms.ToTensor())
labeled_loader = DataLoader(Subset(images, range(250)), batch_size=64, shuffle=True)
unlabeled_loader = DataLoader(Subset(images, range(250, 50000)), batch_size=64, shuffle=True)  # finds: no-workers

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
known = iter(labeled_loader)
for epoch in range(3):
    for x, _ in unlabeled_loader:
        try:
            more, labels = next(known)
        except StopIteration:
            known = iter(labeled_loader)
            more, labels = next(known)
        model(torch.cat([x, more]).cuda()).mean().backward()
        optimizer.step()
