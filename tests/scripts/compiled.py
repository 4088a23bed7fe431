"""torch.compile with two backends, with a graph break and a print inside."""
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(128, 512), nn.Linear(512, 10)
        self.calls = 0

    def forward(self, x):
        x = torch.relu(self.a(x))
        torch._dynamo.graph_break()
        x = x * 2
        if x.sum() > -1e9:
            x = x + 1
        return self.b(x)


@torch.compile(backend="eager")
def penalty(parameters):
    total = sum(p.square().sum() for p in parameters)
    print("penalty")
    return 1e-4 * total


loader = DataLoader(TensorDataset(torch.randn(640, 128), torch.randint(0, 10, (640,))), batch_size=16)
for backend in ("eager", "aot_eager"):
    model = Net()
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(compiled(x), y) + penalty(list(model.parameters()))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(backend, losses)
print("frames", dict(counters["frames"]), "graphs", counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"])
print("breaks", sorted(counters["graph_break"].items()))
