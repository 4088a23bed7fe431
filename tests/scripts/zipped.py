"""Labelled and unlabelled batches, zipped."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

labelled = DataLoader(TensorDataset(torch.randn(400, 256), torch.randint(0, 5, (400,))), batch_size=10, shuffle=True)
unlabelled = DataLoader(TensorDataset(torch.randn(2000, 256)), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 5)).to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(2):
    for (x, y), (u,) in zip(labelled, unlabelled):
        x, y, u = x.to(device), y.to(device), u.to(device)
        sure = nn.functional.cross_entropy(model(x), y)
        entropy = -(model(u).softmax(1) * model(u).log_softmax(1)).sum(1).mean()
        loss = sure + 0.1 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
