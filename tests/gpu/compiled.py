"""torch.compile on the GPU: the same graphs, the same breaks."""
import torch
import torch._dynamo as dynamo
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 1)

    def forward(self, x):
        x = self.a(x.to(torch.float32)).relu()
        if x.sum().item() > 1e9:
            x = x + 1
        return self.b(x)


model = torch.compile(Net().cuda(), backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(30):
    x = torch.randn(32, 64).to("cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(repr(loss.item()))
counters = dynamo.utils.counters
print(dict(counters["stats"]), sum(counters["graph_break"].values()), sorted(counters["graph_break"]))
