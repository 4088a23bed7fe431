import cv2
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = (224, 224)


class Photos(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        path = "%d.jpg" % index
        a = cv2.resize(cv2.imread(path), (64, 64))  # finds: large-decode
        b = Image.open(path).convert("RGB").resize(SIZE)  # finds: large-decode
        c = cv2.imread(path)  # finds: large-decode
        c = cv2.cvtColor(c, cv2.COLOR_BGR2RGB)
        c = cv2.resize(c, (128, 96))
        d = Image.open(path)  # finds: large-decode
        d = d.resize((32, 32))
        return a, b, c, d


train_loader = DataLoader(Photos(), shuffle=True, num_workers=4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x in train_loader:
        model(x).mean().backward()
        optimizer.step()
