"""Mixed precision with a GradScaler, a per-step .item(), pinned loader."""
import json, os, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = False
device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 3, 64, 64), torch.randint(0, 10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.Conv2d(64, 128, 3, padding=1, stride=2), nn.BatchNorm2d(128), nn.ReLU(),
    nn.Conv2d(128, 128, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(128 * 16 * 16, 10),
).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
losses, times = [], []
before = time.perf_counter()
for epoch in range(4):
    for x, y in loader:
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        now = time.perf_counter()
        times.append(now - before)
        before = now
print(repr(losses))
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
if os.environ.get("TIMES"):
    json.dump(times, open(os.environ["TIMES"], "w"))
