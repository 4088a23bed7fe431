import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class OnDevice(Dataset):
    def __init__(self):
        self.x = torch.randn(32, 4, device=device)

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.x[index]


class Plain(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.randn(4)


def collate(samples):
    return torch.stack(samples).to(device)


kwargs = {"pin_memory": True}
train_loader = DataLoader(Plain(), shuffle=True, pin_memory=True)
asked = DataLoader(Plain(), shuffle=True, pin_memory=torch.cuda.is_available())
hidden = DataLoader(Plain(), shuffle=True, **kwargs)
there = DataLoader(OnDevice(), shuffle=True)
resident = DataLoader(TensorDataset(torch.randn(32, 4).to(device)), shuffle=True)
moved = DataLoader(Plain(), shuffle=True, collate_fn=collate)
val_loader = DataLoader(Plain())
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train_loader:
    model(x.to(device)).mean().backward()
    optimizer.step()
