"""detect_anomaly as a context around each training step, from hunting a NaN long ago."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.change = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.tanh(self.change(x)) + (1 - gate) * x


def training_step(model, optimizer, x, y):
    with torch.autograd.detect_anomaly():
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(960, 32)
    loader = DataLoader(TensorDataset(x, (x[:, :1] > 0).float()), batch_size=16)
    model = nn.Sequential(*[Highway(32) for _ in range(8)], nn.Linear(32, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    print([round(training_step(model, optimizer, *batch), 5) for batch in loader][-1])
