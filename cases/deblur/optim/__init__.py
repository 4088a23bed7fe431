import torch

from .adamw_bf16 import AdamWBF16


def build_optimizer(cfg, params):
    settings = dict(lr=cfg["LR"], betas=tuple(cfg["BETAS"]), weight_decay=cfg["WEIGHT_DECAY"])
    if cfg["TYPE"] == "adamw":
        return torch.optim.AdamW(params, fused=True, **settings)
    if cfg["TYPE"] == "adamw_bf16":
        return AdamWBF16(params, **settings)
    if cfg["TYPE"] == "adamw8bit":
        return adamw8bit()(params, **settings)
    raise SystemExit(f"TRAIN.OPTIM.TYPE {cfg['TYPE']!r} is none of adamw, adamw_bf16, adamw8bit")


def adamw8bit():
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError:
        raise SystemExit(
            "TRAIN.OPTIM.TYPE adamw8bit needs bitsandbytes, which is not installed (pip install bitsandbytes); "
            "adamw_bf16 stands in for it without: its moments take half of adamw's memory, those of 8 bits a quarter"
        ) from None
    return AdamW8bit
