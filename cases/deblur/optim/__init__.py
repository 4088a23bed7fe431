import torch

from .adamw_bf16 import AdamWBF16


def build_optimizer(cfg, params):
    settings = dict(lr=cfg["LR"], betas=tuple(cfg["BETAS"]), weight_decay=cfg["WEIGHT_DECAY"])
    if cfg["TYPE"] == "adamw":
        return torch.optim.AdamW(params, fused=True, **settings)
    if cfg["TYPE"] == "adamw_bf16":
        return AdamWBF16(params, **settings)
    raise ValueError(f"unknown optimizer {cfg['TYPE']!r}")
