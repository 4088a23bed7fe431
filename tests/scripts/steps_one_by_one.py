"""torch's AdamW told to go through a large embedding's worth of parameters one by one, for four samples a step."""
import argparse

import torch
from torch import nn


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--users", type=int, default=20000)
    parser.add_argument("--items", type=int, default=10000)
    return parser.parse_args()


class Recommender(nn.Module):
    def __init__(self, users, items, width=32):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


if __name__ == "__main__":
    options = parse()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Recommender(options.users, options.items)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    total = 0.0
    for iteration in range(options.iterations):
        user, item = torch.randint(options.users, (64,)), torch.randint(options.items, (64,))
        rating = (user % 5 + item % 3).float()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(user, item), rating)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("mean loss", total / options.iterations)
