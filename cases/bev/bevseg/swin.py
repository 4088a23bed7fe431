"""The first three stages of a Swin transformer: features at a 16th of the resolution."""

import torch
import torch.nn.functional as F
from torch import nn


def partition(x, window):
    """(b, h, w, c) into (b * windows, window * window, c)."""
    b, h, w, c = x.shape
    x = x.view(b, h // window, window, w // window, window, c)
    return x.transpose(2, 3).reshape(-1, window * window, c)


def reverse(windows, window, h, w):
    """Undo `partition`."""
    x = windows.view(-1, h // window, w // window, window, window, windows.shape[-1])
    return x.transpose(2, 3).reshape(-1, h, w, windows.shape[-1])


class WindowAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.bias_table, std=0.02)
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = at[:, :, None] - at[:, None, :] + window - 1
        self.register_buffer("bias_index", relative[0] * (2 * window - 1) + relative[1], persistent=False)

    def forward(self, x, mask=None):
        n, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q * self.scale) @ k.transpose(-2, -1) + self.bias_table[self.bias_index].permute(2, 0, 1)
        if mask is not None:
            scores = scores.view(-1, len(mask), self.heads, tokens, tokens) + mask[:, None]
            scores = scores.view(n, self.heads, tokens, tokens)
        x = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, tokens, dim)
        return self.proj(x)


class SwinBlock(nn.Module):
    """Attention in windows, every other block's shifted by half a window."""

    def __init__(self, dim, heads, window, shift, resolution):
        super().__init__()
        self.window, self.shift = window, shift
        self.padding = [-size % window for size in resolution]
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, heads, window)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        padded = [size + more for size, more in zip(resolution, self.padding, strict=True)]
        self.register_buffer("mask", self._mask(*padded) if shift else None, persistent=False)

    def _mask(self, h, w):
        """After the shift, windows at the border hold parts that do not belong together."""
        part = torch.zeros(1, h, w, 1)
        slices = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in slices for c in slices):
            part[:, rows, columns] = number
        part = partition(part, self.window).squeeze(-1)
        return (part[:, :, None] != part[:, None, :]).float() * -100.0

    def forward(self, x):
        h, w = x.shape[1:3]
        y = F.pad(self.norm1(x), (0, 0, 0, self.padding[1], 0, self.padding[0]))
        size = y.shape[1:3]
        if self.shift:
            y = y.roll((-self.shift, -self.shift), (1, 2))
        y = reverse(self.attn(partition(y, self.window), self.mask), self.window, *size)
        if self.shift:
            y = y.roll((self.shift, self.shift), (1, 2))
        x = x + y[:, :h, :w]
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], dim=-1)
        return self.reduction(self.norm(x))


class SwinTransformer(nn.Module):
    def __init__(self, input_size, embed_dims, depths, num_heads, window_size):
        super().__init__()
        self.embed = nn.Conv2d(3, embed_dims, 4, 4)
        self.embed_norm = nn.LayerNorm(embed_dims)
        layers, dim, resolution = [], embed_dims, [size // 4 for size in input_size]
        for stage, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
            if stage:
                layers.append(PatchMerging(dim))
                dim, resolution = 2 * dim, [size // 2 for size in resolution]
            for i in range(depth):
                shift = window_size // 2 if i % 2 else 0
                layers.append(SwinBlock(dim, heads, window_size, shift, resolution))
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(dim)
        self.out_channels = dim

    def forward(self, x):
        x = self.embed_norm(self.embed(x).permute(0, 2, 3, 1))
        return self.norm(self.layers(x)).permute(0, 3, 1, 2)
