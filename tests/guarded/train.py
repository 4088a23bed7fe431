"""A classifier on small files, shuffled; every option is one thing that must not happen to results.

Run by test_trial_results under `floorit try`: it knows nothing of that.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES, BATCH, EPOCHS = 320, 16, 6


class Files(Dataset):
    """Rows of 20 numbers, 8 to a file."""

    def __init__(self, folder):
        dice = np.random.default_rng(0)
        rows = dice.standard_normal((SAMPLES, 20)).astype(np.float32)
        noise = dice.standard_normal(SAMPLES)
        self.labels = torch.from_numpy((rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.5 * noise > 0).astype(np.int64))
        self.paths = [folder / f"{number}.npy" for number in range(SAMPLES // 8)]
        for number, path in enumerate(self.paths):
            np.save(path, rows[8 * number : 8 * number + 8])

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.paths[index // 8])[index % 8]), self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr-factor", type=float, default=1.0)
    parser.add_argument("--drop-term", action="store_true", help="leave the penalty on the weights out of the loss")
    parser.add_argument("--corrupt-every", type=int, default=0, metavar="N", help="one batch in N is zeros")
    parser.add_argument("--reorder", action="store_true", help="another shuffle")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005 * given.lr_factor)
    step = 0
    with tempfile.TemporaryDirectory() as folder:
        shuffle = torch.Generator().manual_seed(1 if given.reorder else 0)
        loader = DataLoader(Files(Path(folder)), batch_size=BATCH, shuffle=True, generator=shuffle)
        for _ in range(EPOCHS):
            for rows, labels in loader:
                step += 1
                if given.corrupt_every and step % given.corrupt_every == 0:
                    rows = torch.zeros_like(rows)
                loss = nn.functional.cross_entropy(model(rows), labels)
                if not given.drop_term:
                    loss = loss + 0.1 * sum(weight.square().mean() for weight in model.parameters())
                optimizer.zero_grad(set_to_none=False)
                loss.backward()
                optimizer.step()


if __name__ == "__main__":
    main()
