"""Healthy: a transformer in mixed precision, compiled, with a fused optimizer."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "14"))
WIDTH, DEPTH, BATCH, LENGTH = (2048, 8, 16, 1024) if DEVICE == "cuda" else (64, 2, 4, 32)
WORDS = 16000 if DEVICE == "cuda" else 500


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixing, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        heads = self.mixing(self.before(x)).unflatten(-1, (3, 16, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.wide(self.between(x))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, following):
        logits = self.head(self.blocks(self.embedding(tokens)))
        return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def main():
    torch.manual_seed(0)
    text = torch.randint(WORDS, (BATCH * 40, LENGTH + 1))
    loader = DataLoader(TensorDataset(text), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=DEVICE == "cuda",
                        persistent_workers=True)  # fmt: skip
    model = Language().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    compiled = torch.compile(model) if DEVICE == "cuda" else model
    end = None
    while end is None or time.perf_counter() < end:
        for (tokens,) in loader:
            tokens = tokens.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = compiled(tokens[:, :-1], tokens[:, 1:])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            end = end or time.perf_counter() + SECONDS
            if time.perf_counter() > end:
                break
    print("loss", loss.item())


main()
