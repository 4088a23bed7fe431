"""A small language model on characters; batches are cut from one long tensor, without a DataLoader."""
import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--context", type=int, default=64)
parser.add_argument("--width", type=int, default=96)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--lr", type=float, default=3e-4)
args = parser.parse_args()

torch.manual_seed(1337)
torch.set_num_threads(1)

text = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. " * 200
letters = sorted(set(text))
data = torch.tensor([letters.index(c) for c in text])


def get_batch():
    starts = torch.randint(len(data) - args.context - 1, (args.batch,))
    x = torch.stack([data[s : s + args.context] for s in starts])
    y = torch.stack([data[s + 1 : s + 1 + args.context] for s in starts])
    return x, y


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (m.view(b, t, self.heads, c // self.heads).transpose(1, 2) for m in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    def __init__(self, vocabulary, width, layers, context):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.blocks(self.token(x) + self.position.weight[: x.shape[1]]))


model = CharGPT(len(letters), args.width, args.layers, args.context)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, foreach=True)
for step in range(args.steps):
    x, y = get_batch()
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
