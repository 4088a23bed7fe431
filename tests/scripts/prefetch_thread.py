"""A thread of the program's own reads the loader and fills a queue."""
import queue
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def fill(loader, batches):
    for batch in loader:
        batches.put(batch)
    batches.put(None)


loader = DataLoader(TensorDataset(torch.randn(6400, 256), torch.randn(6400, 1)), batch_size=80)
batches = queue.Queue(maxsize=4)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
threading.Thread(target=fill, args=(loader, batches), daemon=True).start()
losses = []
while True:
    batch = batches.get()
    if batch is None:
        break
    x, y = batch
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
