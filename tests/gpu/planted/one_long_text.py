"""One document is far longer than the others, and its attention does not fit into the memory there is."""
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cuda")
LIMIT = 8 << 30  # bytes that this program may have, as on a shared GPU


class Attention(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        scores = self.queries(x) @ self.keys(x).transpose(1, 2)
        return scores.softmax(dim=-1) @ self.values(x)


if DEVICE == "cuda":
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(LIMIT / total)
torch.manual_seed(0)
model = nn.Sequential(Attention(), Attention()).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for document in range(2000):
    length = 20_000 if document == 1800 else 256 + document % 256
    x = torch.randn(8, length, 256, device=DEVICE)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
