"""torch.compile over the whole step, the optimizer's too."""
import torch
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(0)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.MSELoss()


@torch.compile(backend="aot_eager", fullgraph=True)
def loss_of(x, y):
    return criterion(model(x), y)


@torch.compile(backend="eager")
def update():
    optimizer.step()
    optimizer.zero_grad()


losses = []
for step in range(80):
    loss = loss_of(torch.randn(32, 256), torch.randn(32, 1))
    loss.backward()
    update()
    losses.append(loss.item())
print(losses)
print(dict(counters["frames"]), counters["stats"]["unique_graphs"], sorted(counters["graph_break"].items()))
