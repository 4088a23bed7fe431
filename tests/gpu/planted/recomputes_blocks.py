"""A language model with every block recomputed in backward, on a GPU where all would fit."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = os.environ.get("DEVICE", "cuda")
SECONDS = float(os.environ.get("SECONDS", "13"))
WIDTH, DEPTH, BATCH, LENGTH = (1024, 12, 16, 512) if DEVICE == "cuda" else (64, 4, 4, 32)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixing, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        heads = self.mixing(self.before(x)).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.wide(self.between(x))


class Language(nn.Module):
    def __init__(self, words=8000):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, words, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
model = Language().to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
text = torch.randint(8000, (64, BATCH, LENGTH + 1), device=DEVICE)
end, step = time.perf_counter() + SECONDS, 0
while time.perf_counter() < end:
    tokens = text[step % len(text)]
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 50 == 0:
        print(step, loss.item())
