"""One worker for a dataset that warps each picture with numpy."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Warped(Dataset):
    def __init__(self, count, side):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        picture = rng.random((self.side, self.side), dtype=np.float32)
        return self.warp(picture, rng), index % 4

    def warp(self, picture, rng):
        """Elastic deformation: each pixel is read between four others."""
        ys, xs = np.meshgrid(np.arange(self.side), np.arange(self.side), indexing="ij")
        for _ in range(3):
            y = np.clip(ys + rng.normal(0, 2, ys.shape), 0, self.side - 2)
            x = np.clip(xs + rng.normal(0, 2, xs.shape), 0, self.side - 2)
            top, left = y.astype(int), x.astype(int)
            dy, dx = y - top, x - left
            picture = (
                picture[top, left] * (1 - dy) * (1 - dx)
                + picture[top + 1, left] * dy * (1 - dx)
                + picture[top, left + 1] * (1 - dy) * dx
                + picture[top + 1, left + 1] * dy * dx
            )
        return torch.from_numpy(picture.astype(np.float32))[None]


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--side", type=int, default=96)
    return parser.parse_args()


def main(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Warped(480, args.side), batch_size=args.batch_size, num_workers=args.workers)
    model = nn.Sequential(nn.Conv2d(1, 8, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("done", loss.item())


if __name__ == "__main__":
    main(get_args())
