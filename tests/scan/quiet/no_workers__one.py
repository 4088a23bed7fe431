"""A dataset of one picture: workers would be started for each batch; nor where torch pads lists that lie in memory."""

import torch
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class Picture(Dataset):
    def __init__(self, path):
        self.image = Image.open(path)

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.image


class Scaled(Dataset):
    def __init__(self, pictures, size):
        self.pictures = pictures
        self.transform = transforms.Resize(size)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index])


def collate(tokens):
    return pad_sequence([torch.tensor(one) for one in tokens], batch_first=True)


train_loader = DataLoader(Scaled(Picture("a.jpg"), 64), shuffle=True, num_workers=0)
texts = DataLoader(torch.load("tokens.pt"), batch_size=4, shuffle=True, collate_fn=collate)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):
    for images in train_loader:
        model(images.cuda()).mean().backward()
        optimizer.step()
