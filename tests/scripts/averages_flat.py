"""Two ranks that average one flat copy of their gradients, without waiting for it at once."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class BagOfWords(nn.Module):
    def __init__(self, words=6000, width=128):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.out = nn.Linear(width, 10)

    def forward(self, tokens):
        return self.out(self.embedding(tokens).mean(dim=1))


class Averaging:
    def __init__(self, parameters):
        self.parameters = list(parameters)

    def start(self):
        self.flat = torch.cat([parameter.grad.flatten() for parameter in self.parameters])
        self.work = dist.all_reduce(self.flat, async_op=True)

    def finish(self):
        self.work.wait()
        for parameter, part in zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])):
            parameter.grad.copy_(part.view_as(parameter))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = BagOfWords()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    averaging = Averaging(model.parameters())
    for _ in range(60):
        tokens, labels = torch.randint(6000, (16, 20)), torch.randint(10, (16,))
        optimizer.zero_grad()
        F.cross_entropy(model(tokens), labels).backward()
        averaging.start()
        averaging.finish()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
