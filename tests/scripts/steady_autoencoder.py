"""An autoencoder that writes its scalars to a file every twenty steps."""
import json
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ScalarWriter:
    def __init__(self, folder):
        self.file = (Path(folder) / "scalars.jsonl").open("w")

    def add_scalar(self, tag, value, step):
        self.file.write(json.dumps({"tag": tag, "value": value, "step": step}) + "\n")

    def close(self):
        self.file.close()


class Waves(Dataset):
    def __init__(self, count):
        phase = torch.rand(count, 8, 1) * 6.28
        self.waves = torch.sin(torch.arange(128) * 0.1 * torch.arange(1, 9).view(1, 8, 1) + phase)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        return self.waves[i]


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(8, 32, 5, 2, 2), nn.ELU(), nn.Conv1d(32, 64, 5, 2, 2), nn.ELU(), nn.Conv1d(64, 8, 1))
        self.decoder = nn.Sequential(
            nn.Conv1d(8, 64, 1), nn.ELU(), nn.ConvTranspose1d(64, 32, 4, 2, 1), nn.ELU(), nn.ConvTranspose1d(32, 8, 4, 2, 1)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main(log_every=20):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Waves(5760), batch_size=96, shuffle=True, drop_last=True)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as folder:
        writer = ScalarWriter(folder)
        for step, wave in enumerate(loader):
            optimizer.zero_grad()
            loss = (model(wave) - wave).square().mean()
            loss.backward()
            optimizer.step()
            if step % log_every == 0:
                writer.add_scalar("loss", loss.item(), step)
                print("step", step, "loss", round(loss.item(), 6))
        writer.close()


main()
