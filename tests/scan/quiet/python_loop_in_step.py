import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.cell = nn.GRUCell(4, 4)
        self.heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(num_classes))
        self.num_classes = num_classes

    def forward(self, x, levels):
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        for layer in self.layers:
            x = layer(x)
        for i, level in enumerate(levels):
            x = x + level.mean()
        state = x
        for t in range(x.shape[0]):
            state = self.cell(x[t].expand_as(state), state)
        outputs = []
        for k in range(self.num_classes):
            outputs.append(self.heads[k](state))
        pyramid = [state, state * 2]
        for feature, level in zip(pyramid, levels):
            x = x + feature.sum() * level.sum()
        return torch.cat(outputs, 1), x


def validate(model, batches):
    for batch in batches:
        output, _ = model(batch, [batch])
        for i in range(output.shape[0]):
            print(output[i].sum())


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.rand(8, 4).to(device)
    output, rest = model(x, [x, x])
    losses = []
    for scale in (1, 2):
        losses.append((output * scale).square().mean())
    for name, value in zip(("a", "b"), losses):
        rest = rest + value
    for p, q in zip(model.parameters(), model.parameters()):
        p.data.mul_(1.0)
    batch_size = 8
    names = []
    for i in range(batch_size):
        names.append(f"{step}_{i}")
    counts = np.zeros(batch_size)
    for i in range(batch_size):
        counts[i] += 1
    rest.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 100 == 0:
        for i in range(output.shape[0]):
            print(output[i].sum())
