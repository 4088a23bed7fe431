"""A small MLP on a table held in memory, with batches cut by slicing."""
import torch
from torch import nn


class FastTensorLoader:
    """Batches by slicing: no item is fetched by itself."""

    def __init__(self, *tensors, batch_size, shuffle=True):
        self.tensors, self.batch_size, self.shuffle = tensors, batch_size, shuffle

    def __iter__(self):
        length = len(self.tensors[0])
        order = torch.randperm(length) if self.shuffle else torch.arange(length)
        for start in range(0, length, self.batch_size):
            chosen = order[start : start + self.batch_size]
            yield tuple(t[chosen] for t in self.tensors)


torch.manual_seed(0)
torch.set_num_threads(1)
table = torch.randn(20480, 40)
price = table[:, :5].prod(1, keepdim=True) + 0.1 * torch.randn(20480, 1)

model = nn.Sequential(
    nn.Linear(40, 128), nn.SiLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.SiLU(), nn.Dropout(0.1), nn.Linear(128, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
for epoch in range(4):
    for features, target in FastTensorLoader(table, price, batch_size=1024):
        prediction = model(features)
        loss = nn.functional.huber_loss(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(epoch, scheduler.get_last_lr()[0], loss.item())
