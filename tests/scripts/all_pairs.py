"""Dies when it compares every pixel of a large picture with every other, in an evaluation after training began."""
import torch
from torch import nn


def affinity(model, side):
    """How alike any two pixels are. Fine for the patches of training; not for a whole picture."""
    with torch.no_grad():
        pixels = torch.rand(side * side, 2) * model[0].weight.abs().mean(0)
        return pixels @ pixels.T


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 61):
        places = torch.rand(4096, 2)
        loss = (model(places).mean(1) - places.prod(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, affinity(model, 16).mean().item())
    print(affinity(model, 3000).mean().item())


if __name__ == "__main__":
    main()
