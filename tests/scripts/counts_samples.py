"""Keeps hard samples in a memory of its own, one by one in Python, after each step."""
import heapq

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, count, words=1000):
        generator = torch.Generator().manual_seed(0)
        self.tokens = torch.randint(0, 1000, (count, words), generator=generator)
        self.labels = self.tokens.sum(1) % 2

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return index, self.tokens[index], self.labels[index]


class HardExamples:
    """The samples with the largest losses, and how often each word stands in them."""

    def __init__(self, size=64):
        self.size, self.heap, self.words = size, [], {}

    def update(self, indices, tokens, losses):
        for index, sample, loss in zip(indices.tolist(), tokens.tolist(), losses.tolist()):
            for word in sample:
                count, seen = self.words.get(word, (0, 0.0))
                self.words[word] = (count + 1, seen + loss)
            heapq.heappush(self.heap, (loss, index))
            if len(self.heap) > self.size:
                heapq.heappop(self.heap)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Reviews(3840), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.EmbeddingBag(1000, 32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hard = HardExamples()
    for index, tokens, label in loader:
        losses = nn.functional.cross_entropy(model(tokens), label, reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        hard.update(index, tokens, losses.detach())
    print(sorted(hard.heap)[-1], len(hard.words))


if __name__ == "__main__":
    main()
