import torch
from torch import nn


class Loss:
    def __call__(self, output, target):
        return (output - self.match(output, target)).square().mean()

    def match(self, output, target):
        return target


class Nearest(Loss):
    @torch.no_grad()
    def match(self, output, target):
        return target.clamp(max=output.max().item())  # finds: item


def train(is_matched):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = Nearest() if is_matched else Loss()
    shares = []
    for step in range(5):
        output = model(torch.randn(8, 4, device=device))
        loss = loss_of(output, torch.randn(8, 1, device=device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            shares.append((output > 0).float().mean().item())  # finds: item
    return shares


train(True)
