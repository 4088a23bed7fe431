"""A gradient scaler that finds infinite gradients in one batch of eight, and takes no step there."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(2560, 256)
x[::512] = float("inf")  # one sample of every eighth batch
loader = DataLoader(TensorDataset(x, torch.randint(0, 10, (2560,))), batch_size=64)
model = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
print(scaler.get_scale(), sum(p.isfinite().all().item() for p in model.parameters()))
