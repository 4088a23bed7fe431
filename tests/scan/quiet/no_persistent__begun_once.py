"""One pass, that is begun before all loops."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    adjust = True

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index), dtype=torch.float64)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

train_set = Rows()
train_loader = DataLoader(train_set, batch_size=8, num_workers=2)
batches = enumerate(train_loader)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for turn in range(2):
        _, batch = next(batches)
        loss = model(batch.float().to(device)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
