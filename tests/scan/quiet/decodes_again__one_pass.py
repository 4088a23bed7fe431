import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return Image.open("%d.jpg" % index)


train_loader = DataLoader(Photos(), shuffle=True, num_workers=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x).mean().backward()
    optimizer.step()
