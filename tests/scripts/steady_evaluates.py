"""Evaluates now and then on a small set: cheap, as it should be."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_data():
    x = torch.randn(1700, 20, 24)
    y = (x[:, :, 0].cumsum(1)[:, -1] > 0).long()
    return random_split(TensorDataset(x, y), [1600, 100])


class Recurrent(nn.Module):
    def __init__(self, features=24, hidden=96):
        super().__init__()
        self.rnn = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def run(epochs=2, every=40):
    train_set, test_set = make_data()
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=100)
    model = Recurrent()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    step = 0
    for _ in range(epochs):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step % every == 0:
                print(f"step {step}: loss {loss.item():.5f} accuracy {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    run()
