"""After every short epoch a long evaluation, then two checkpoints that take half as long or less."""
import json
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, vocabulary=60000, width=64, tags=9):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.out(torch.relu(self.mix(self.embed(tokens).transpose(1, 2))).transpose(1, 2))


class Experiment:
    def __init__(self, folder):
        tokens = torch.randint(0, 60000, (1900, 24))
        data = TensorDataset(tokens, tokens % 9)
        self.train = DataLoader(torch.utils.data.Subset(data, range(120)), batch_size=20)
        self.test = DataLoader(torch.utils.data.Subset(data, range(120, 1900)), batch_size=40)
        self.model, self.folder = Tagger(), folder
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.evals, self.saves = [], []

    def train_epoch(self):
        for tokens, tags in self.train:
            loss = nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), tags.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.evals.append(0.0)
            self.saves.append(0.0)

    def validate(self):
        right = 0
        self.model.eval()
        with torch.no_grad():
            for tokens, tags in self.test:
                right += int((self.model(tokens).argmax(-1) == tags).sum())
        self.model.train()
        return right

    def save(self):
        for name in ("last.pt", "best.pt"):
            torch.save(self.model.state_dict(), os.path.join(self.folder, name))

    def run(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            begin = time.perf_counter()
            right = self.validate()
            self.evals[-1] = time.perf_counter() - begin
            begin = time.perf_counter()
            self.save()
            self.saves[-1] = time.perf_counter() - begin
            print(epoch, right)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment(folder)
        experiment.run(epochs=12)
    if "PLANTED_OUT" in os.environ:
        with open(os.environ["PLANTED_OUT"], "w") as file:
            json.dump({"eval": experiment.evals, "checkpoint": experiment.saves}, file)
