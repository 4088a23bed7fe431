import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x, lengths):
        parts = x.split(lengths.tolist())  # lengths stay on the host, for packing
        return self.inner(torch.cat(parts))


model = Tagger().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    lengths = torch.tensor([3, 5])
    shape = list(lengths.shape)
    sizes = np.arange(4).tolist()
    output = model(torch.randn(8, 4).to(device), lengths)
    output.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 50 == 0:
        print(output.argmax(1).tolist())
print(output.argmax(1).tolist(), lengths.tolist())
