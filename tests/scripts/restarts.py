"""Many short epochs, and three workers started anew for each."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, count=64):
        self.steps = torch.randn(count, 30, 16, generator=torch.Generator().manual_seed(0)).cumsum(1)

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        return self.steps[index, :-1], self.steps[index, 1:]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.out = nn.Linear(48, 16)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


def train_one_epoch(model, loader, optimizer):
    losses = []
    for inputs, targets in loader:
        loss = nn.functional.l1_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Sequences(), batch_size=16, num_workers=3)
    model = Forecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = [train_one_epoch(model, loader, optimizer) for _ in range(16)]
    print(" ".join(f"{loss:.5f}" for loss in history))


if __name__ == "__main__":
    main()
