"""Video restoration transformer: stages 1-7 in a U shape over scales, stage 8 at full resolution.

Feature maps are (B, T, H, W, C) inside of the stages.
"""

import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def run_layer(layer, x, use_checkpoint):
    """A residual branch, with its activations kept or computed again in the backward pass."""
    if use_checkpoint:
        return checkpoint(layer, x, use_reentrant=False)
    return layer(x)


def fit_window(size, window):
    """The window, made smaller where it does not divide the feature map."""
    return tuple(math.gcd(s, w) for s, w in zip(size, window))


def window_partition(x, window):
    b, t, h, w, c = x.shape
    wt, wh, ww = window
    x = x.view(b, t // wt, wt, h // wh, wh, w // ww, ww, c)
    return x.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, wt * wh * ww, c)


def window_reverse(windows, window, shape):
    b, t, h, w, c = shape
    wt, wh, ww = window
    x = windows.view(b, t // wt, h // wh, w // ww, wt, wh, ww, c)
    return x.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(b, t, h, w, c)


def relative_position_index(window):
    axes = [torch.arange(n) for n in window]
    coords = torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
    rel = coords[:, :, None] - coords[:, None, :]
    index = torch.zeros(rel.shape[1:], dtype=torch.long)
    for axis, n in enumerate(window):
        index = index * (2 * n - 1) + rel[axis] + n - 1
    return index


class WindowAttention(nn.Module):
    """Temporal (mutual) self attention in 3D windows, shifted in every other block."""

    def __init__(self, dim, heads, window, shift, mutual):
        super().__init__()
        self.heads, self.window, self.mutual = heads, tuple(window), mutual
        self.shift = tuple(w // 2 for w in window) if shift else None
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.bias_table = nn.Parameter(torch.zeros(math.prod(2 * n - 1 for n in self.window), heads))
        nn.init.trunc_normal_(self.bias_table, std=0.02)
        self.register_buffer("bias_index", relative_position_index(self.window), persistent=False)

    def attend(self, x):
        n_windows, n, c = x.shape
        q, k, v = self.qkv(x).view(n_windows, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.mutual:  # every frame of the window looks at the other one
            k, v = k.roll(n // 2, dims=2), v.roll(n // 2, dims=2)
        bias = self.bias_table[self.bias_index.flatten()].view(n, n, self.heads).permute(2, 0, 1)
        attn = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1) + bias
        out = attn.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(n_windows, n, c))

    def forward(self, x):
        shape = x.shape
        x = self.norm(x)
        if self.shift:
            x = x.roll([-s for s in self.shift], dims=(1, 2, 3))
        x = window_reverse(self.attend(window_partition(x, self.window)), self.window, shape)
        return x.roll(self.shift, dims=(1, 2, 3)) if self.shift else x


class Conv(nn.Module):
    """A convolution over each frame, on channels-last feature maps."""

    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.conv = nn.Conv2d(dim_in, dim_out, 3, padding=1)

    def forward(self, x):
        y = self.conv(x.flatten(0, 1).permute(0, 3, 1, 2))
        return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


class GEGLU(nn.Module):
    """Gated feed-forward; at full resolution its first layer is a convolution."""

    def __init__(self, dim, ratio, conv):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = (Conv if conv else nn.Linear)(dim, 2 * ratio * dim)
        self.out = nn.Linear(ratio * dim, dim)
        self.act = nn.GELU()

    def forward(self, x):
        gate, value = self.gate(self.norm(x)).chunk(2, dim=-1)
        return self.out(self.act(gate) * value)


class TMSA(nn.Module):
    def __init__(self, dim, heads, window, shift, mutual, conv_ffn, cfg):
        super().__init__()
        self.attn = WindowAttention(dim, heads, window, shift, mutual)
        self.ffn = GEGLU(dim, cfg["mlp_ratio"], conv_ffn)
        self.use_checkpoint_attn = cfg["use_checkpoint_attn"]
        self.use_checkpoint_ffn = cfg["use_checkpoint_ffn"]

    def forward(self, x):
        x = x + run_layer(self.attn, x, self.use_checkpoint_attn)
        return x + run_layer(self.ffn, x, self.use_checkpoint_ffn)


class Reshape(nn.Module):
    """From one scale and width to the next: patches are merged or split."""

    def __init__(self, dim_in, dim_out, scale_in, scale_out):
        super().__init__()
        self.down, self.up = max(scale_out // scale_in, 1), max(scale_in // scale_out, 1)
        self.norm = nn.LayerNorm(dim_in * self.down**2)
        self.linear = nn.Linear(dim_in * self.down**2, dim_out * self.up**2)

    def forward(self, x):
        b, t, h, w, _ = x.shape
        d, u = self.down, self.up
        if d > 1:
            x = x.view(b, t, h // d, d, w // d, d, -1).transpose(3, 4).reshape(b, t, h // d, w // d, -1)
        x = self.linear(self.norm(x))
        if u > 1:
            x = x.view(b, t, h, w, u, u, -1).transpose(3, 4).reshape(b, t, h * u, w * u, -1)
        return x


class Stage(nn.Module):
    def __init__(self, dim, depth, heads, size, cfg, reshape=None, last=False):
        super().__init__()
        self.reshape = reshape or nn.Identity()
        window = fit_window(size, cfg["window_size"])
        # three quarters of the blocks exchange information between neighbouring frames, those of stage 8 do not
        n_mutual = 0 if last else (3 * depth + 3) // 4
        self.blocks = nn.Sequential(
            *[TMSA(dim, heads, window, i % 2 == 1, i < n_mutual, conv_ffn=last, cfg=cfg) for i in range(depth)]
        )
        self.conv = Conv(dim, dim)

    def forward(self, x):
        x = self.reshape(x)
        return x + self.conv(self.blocks(x))


class VRT(nn.Module):
    def __init__(self, cfg, in_channels, n_frames, crop_size, timing):
        super().__init__()
        self.timing = timing
        dims, scales, depths, heads = cfg["embed_dims"], cfg["scales"], cfg["depths"], cfg["num_heads"]
        self.conv_first = Conv(in_channels, dims[0])
        self.stages = nn.ModuleList()
        for i, (dim, scale) in enumerate(zip(dims, scales)):
            reshape = Reshape(dims[i - 1], dim, scales[i - 1], scale) if i else None
            size = (n_frames, crop_size // scale, crop_size // scale)
            self.stages.append(Stage(dim, depths[i], heads[i], size, cfg, reshape))

        dim8, size = cfg["stage8_dim"], (n_frames, crop_size, crop_size)
        groups = [
            Stage(dim8, cfg["stage8_depth"], cfg["stage8_heads"], size, cfg, last=True)
            for _ in range(cfg["stage8_groups"])
        ]
        self.stage8 = nn.Sequential(Reshape(dims[-1], dim8, 1, 1), *groups, nn.LayerNorm(dim8))
        self.conv_last = Conv(dim8, 3)

    def forward(self, frames, spike_features):
        """(B, T, 3, H, W) and (B, T, C, H, W) -> (B, T, 3, H, W)"""
        x = torch.cat([frames, spike_features], dim=2).permute(0, 1, 3, 4, 2)
        x = self.conv_first(x)
        skips = []
        for i, stage in enumerate(self.stages):
            with self.timing.timer(f"VRT Stage{i + 1}"):
                x = stage(x)
                if i < 3:
                    skips.append(x)
                elif i > 3:
                    x = x + skips.pop()
        with self.timing.timer("VRT Stage8"):
            x = self.stage8(x)
        return frames + self.conv_last(x).permute(0, 1, 4, 2, 3)
