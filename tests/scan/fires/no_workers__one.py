"""A dataset that counts what it goes round: many, or more than a batch."""

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class Pictures(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return Image.open(self.paths[index])


class Drawn(Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, index):
        return Image.open("a.jpg").rotate(index)


class Scaled(Dataset):
    def __init__(self, pictures, size):
        self.pictures = pictures
        self.transform = transforms.Resize(size)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index])


train_loader = DataLoader(Scaled(Pictures(["a.jpg", "b.jpg"]), 64), shuffle=True, num_workers=0)  # finds: no-workers
others = DataLoader(Scaled(Drawn(), 64), batch_size=16, shuffle=True)  # finds: no-workers
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):
    for images in train_loader:
        model(images.cuda()).mean().backward()
        optimizer.step()
