"""checkpoint_sequential around all layers of a model that would have fitted."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.across = nn.Linear(tokens, tokens)
        self.within = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(x)


class Model(nn.Module):
    def __init__(self, depth=8, tokens=32, width=64, segments=8):
        super().__init__()
        self.segments = segments
        self.embed = nn.Linear(12, width)
        self.layers = nn.Sequential(*[Mixer(tokens, width) for _ in range(depth)])
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        x = self.embed(x)
        x = checkpoint_sequential(self.layers, self.segments, x, use_reentrant=False)
        return self.head(x.mean(1))


def main(iterations=60):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(iterations):
        patches = torch.randn(24, 32, 12)
        loss = nn.functional.cross_entropy(model(patches), (patches.mean((1, 2)) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
