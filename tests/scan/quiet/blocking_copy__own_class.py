"""A whole batch, of a class with a method of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Batch:
    def __init__(self, rows):
        self.rows = torch.stack(rows)

    def pin_memory(self):
        self.rows = self.rows.pin_memory()
        return self

    def to(self, where):
        self.rows = self.rows.to(where, non_blocking=True)
        return self


train_loader = DataLoader([torch.randn(4)] * 32, batch_size=8, collate_fn=Batch, pin_memory=True)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in train_loader:
    batch.to(device)
    loss = model(batch.rows).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
