"""A collate that keeps a list of per-sample tensors of different sizes, as detectors do."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Boxes(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3 + index % 5, 64, generator=generator), {"label": torch.tensor(index % 3)}


def collate(samples):
    return tuple(zip(*samples))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.head = nn.Linear(512, 3)

    def forward(self, images, targets):
        rows = torch.stack([self.body(image).mean(0) for image in images])
        return nn.functional.cross_entropy(self.head(rows), torch.stack([t["label"] for t in targets]))


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(2):
    for images, targets in DataLoader(Boxes(), batch_size=6, collate_fn=collate, shuffle=True):
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss = model(images, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
