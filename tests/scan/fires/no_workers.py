import argparse

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, random_split
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()


class Photos(Dataset):
    def __init__(self, paths, transform):
        self.paths, self.transform = paths, transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]))


def collate(samples):
    return tokenizer.pad(samples, return_tensors="pt")


photos = Photos(["a.jpg"], transforms.ToTensor())
some, others = random_split(photos, [8, 2])
train_loader = DataLoader(photos, batch_size=8, shuffle=True)  # finds: no-workers
digits = DataLoader(datasets.MNIST("data", train=True), shuffle=True, num_workers=0)  # finds: no-workers
parts = DataLoader(some, batch_size=8, shuffle=True, num_workers=args.workers)  # finds: no-workers
texts = DataLoader(tokenized["train"], shuffle=True, collate_fn=collate)  # finds: no-workers
val_loader = DataLoader(others, batch_size=8)

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for images in train_loader:
        model(images.cuda()).mean().backward()
        optimizer.step()
