"""A sample cannot be read, in a worker."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Broken(Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        if index == 2000:
            raise ValueError(f"sample {index} is corrupt")
        return torch.full((256,), index / 3200), torch.tensor([index / 3200])


def main():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Broken(), batch_size=32, num_workers=2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.17g}")


if __name__ == "__main__":
    main()
