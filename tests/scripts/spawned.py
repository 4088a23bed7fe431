"""Workers started by spawn."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Squares(Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        value = sum((index * i) % 17 for i in range(3000)) / 3000
        return torch.full((256,), value), torch.tensor([value / 16])


def main():
    model = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for x, y in DataLoader(Squares(), batch_size=8, num_workers=1, multiprocessing_context="spawn"):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(losses)


if __name__ == "__main__":
    main()
