import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x, mode, depth, mask=None):
        assert x.shape[1] == 4
        assert x.dim() == 2 and x.dtype == torch.float32
        if mode == "full" and mask is not None:
            x = x * mask
        if depth > 1 or max(x.shape) > 100:
            return self.forward(x, mode, depth - 1)
        if x.is_cuda and torch.is_floating_point(x) and x.requires_grad:
            return self.inner(x)
        return self.inner(x)


def losses_of(out):
    return {"mean": out.square().mean()} if out is not None else {}


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    out = model(torch.rand(8, 4).to(device), "full", 1)
    losses = losses_of(out)
    if losses and len(out) > 2:
        loss = sum(losses.values())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scale = float("1.5")
    count = int(out.shape[0])
    if step % 10 == 0 and loss > 3:
        print("large")
    if step % 10 == 0:
        assert loss < 1e9
        print(float(loss))
if loss > 1:
    print("done")
