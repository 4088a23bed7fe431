"""A collate function that pads sentences word by word in Python."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD = 0


class Sentences(Dataset):
    def __init__(self, count):
        chooser = random.Random(0)
        self.sentences = [[chooser.randrange(1, 500) for _ in range(chooser.randrange(40, 120))] for _ in range(count)]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        return self.sentences[index], len(self.sentences[index]) % 3


def pad_batch(samples):
    longest = max(len(words) for words, _ in samples)
    tokens, positions, mask = [], [], []
    for words, _ in samples:
        row, where, seen = [], [], []
        for place in range(longest):
            row.append(torch.tensor(words[place] if place < len(words) else PAD))
            where.append(place)
            seen.append(float(place < len(words)))
        tokens.append(torch.stack(row))
        positions.append(where)
        mask.append(seen)
    return torch.stack(tokens), torch.tensor(positions), torch.tensor(mask), torch.tensor([label for _, label in samples])


class Attentive(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words, self.places = nn.Embedding(500, width, padding_idx=PAD), nn.Embedding(128, width)
        self.score, self.out = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, tokens, positions, mask):
        x = self.words(tokens) + self.places(positions)
        weights = self.score(x).squeeze(-1).masked_fill(mask == 0, -1e9).softmax(-1)
        return self.out((weights.unsqueeze(-1) * x).sum(1))


torch.manual_seed(0)
torch.set_num_threads(1)
train_loader = DataLoader(Sentences(960), batch_size=16, shuffle=True, collate_fn=pad_batch)
model = Attentive()
optimizer = torch.optim.Adam(model.parameters())
for tokens, positions, mask, labels in train_loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens, positions, mask), labels)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}")
