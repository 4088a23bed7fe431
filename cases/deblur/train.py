"""Trains the spike-guided VRT for video deblurring.

    python train.py --cfg configs/deblur/vrt_spike_baseline.yaml
    torchrun --nproc-per-node 3 train.py
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import numpy as np
import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from data import ClipSampler, DeblurDataset
from losses import RestorationLoss
from models import SpikeVRT
from optim import build_optimizer
from utils.timing_logger import TimingLogger

CONFIGS = {"cpu": "configs/deblur/vrt_spike_cpu.yaml", "gpu": "configs/deblur/vrt_spike_baseline.yaml"}
WARMUP = 10

# --fault-free NAME: settings that replace those of the config file
FAULT_FREE = {
    "checkpoint": {"MODEL.VRT.use_checkpoint_attn": False, "MODEL.VRT.use_checkpoint_ffn": False},
    "batch": {"TRAIN.BATCH_SIZE": 3},
    "optimizer-state": {"TRAIN.OPTIM.TYPE": "adamw_bf16"},
    "perceptual": {"LOSS.PERCEPTUAL.share_target": True},
    "timing-log": {"LOG.TIMING": False},
}


def parse_args():
    default_scale = "gpu" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cfg", help="config file (default: that of the scale)")
    parser.add_argument("--scale", choices=CONFIGS, default=default_scale)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--fault-free", action="append", default=[], choices=[*FAULT_FREE, "all"], metavar="NAME",
                        help="one of %(choices)s; may be repeated")
    parser.add_argument("--data", help="folder of the data; made if it is missing")
    parser.add_argument("--out", help="folder for the logs")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def merge(base, changes):
    for key, value in changes.items():
        base[key] = merge(base[key], value) if isinstance(value, dict) and key != "layers" else value
    return base


def load_config(path):
    with open(path, encoding="utf-8") as file:
        cfg = yaml.safe_load(file)
    base = cfg.pop("_BASE_", None)
    return merge(load_config(os.path.join(os.path.dirname(path), base)), cfg) if base else cfg


def build_config(args):
    cfg = load_config(args.cfg or os.path.join(HERE, CONFIGS[args.scale]))
    for name, changes in FAULT_FREE.items():
        if name in args.fault_free or "all" in args.fault_free:
            for path, value in changes.items():
                *parents, key = path.split(".")
                node = cfg
                for parent in parents:
                    node = node[parent]
                node[key] = value
    return cfg


def setup_distributed(use_cuda):
    if "RANK" not in os.environ:
        return 0, 1, torch.device("cuda", 0) if use_cuda else torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if use_cuda else torch.device("cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if use_cuda else "gloo")
    return dist.get_rank(), dist.get_world_size(), device


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def prepare_data(args, rank, world_size):
    cases = os.environ.get("FLOORIT_CASES") or os.path.expanduser("~/.cache/floorit-cases")
    root = args.data or os.path.join(cases, "deblur", args.scale)
    if rank == 0:
        make_data = os.path.join(HERE, "make_data.py")
        subprocess.run([sys.executable, make_data, "--scale", args.scale, "--out", root], check=True)
    if world_size > 1:
        dist.barrier()
    return root


def build_loader(root, cfg, steps, rank, world_size, seed, use_cuda):
    dataset = DeblurDataset(root, cfg["DATASET"], seed)
    batch_size = cfg["TRAIN"]["BATCH_SIZE"]
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=ClipSampler(len(dataset), steps * batch_size, rank, world_size, seed),
        num_workers=cfg["DATASET"]["NUM_WORKERS"],
        pin_memory=use_cuda,
    )


def limit_memory(gigabytes, device):
    """Trains inside the memory of the production cards, whatever this one has."""
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, gigabytes * 2**30 / total), device)


def set_lr(optimizer, base_lr, step, total):
    lr = base_lr * 0.5 * (1 + math.cos(math.pi * step / total))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def train(cfg, steps, loader, model, criterion, optimizer, timing, device, rank, world_size):
    """Returns the losses and the seconds of a step after the warm-up."""
    batch_size, print_freq = cfg["TRAIN"]["BATCH_SIZE"], cfg["LOG"]["PRINT_FREQ"]
    use_amp = device.type == "cuda" and cfg["TRAIN"]["AMP"] == "bf16"
    losses, batch_times, data_times = [], [], []
    started, timed_from = time.perf_counter(), 0
    batch_start_time = time.time()
    for step, batch in enumerate(loader, 1):
        batch = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        data_times.append(time.time() - batch_start_time)
        lr = set_lr(optimizer, cfg["TRAIN"]["OPTIM"]["LR"], step, cfg["TRAIN"]["TOTAL_STEPS"])

        with timing.timer("forward"), torch.autocast(device.type, torch.bfloat16, enabled=use_amp):
            output = model(batch["blur"], batch["spikes"])
        loss = criterion(output, batch["sharp"])
        optimizer.zero_grad(set_to_none=False)  # the gradient buffers stay where they are
        loss.backward()
        optimizer.step()

        losses.append(loss.detach())
        timing.write(step)
        batch_times.append(time.time() - batch_start_time)
        batch_start_time = time.time()
        if step % print_freq == 0 and rank == 0:
            avg_batch_time = np.mean(batch_times[-print_freq:])
            samples_per_sec = (batch_size * world_size) / avg_batch_time
            print(f"step {step}/{steps} | loss {loss.item():.4f} | lr {lr:.2e} | {samples_per_sec:.1f} samples/s"
                  f" | data_time={np.median(data_times) * 1e3:.1f}ms", flush=True)
        if step == WARMUP and steps > WARMUP:
            synchronize(device)
            started, timed_from = time.perf_counter(), step
    synchronize(device)
    return losses, (time.perf_counter() - started) / (steps - timed_from)


def write_summary(out, args, device, steps, samples_per_step, losses, step_seconds):
    summary = {
        "case": "deblur",
        "scale": args.scale,
        "device": str(device),
        "steps": steps,
        "warmup": WARMUP if steps > WARMUP else 0,
        "step_seconds": step_seconds,
        "samples_per_second": samples_per_step / step_seconds,
        "losses": [float(loss) for loss in losses],
    }
    if device.type == "cuda":
        summary["memory_peak"] = torch.cuda.max_memory_allocated(device)
        summary["memory_reserved"] = torch.cuda.max_memory_reserved(device)
    with open(os.path.join(out, "summary.json"), "w", encoding="utf-8") as file:
        json.dump(summary, file)
    print(f"{step_seconds * 1e3:.0f} ms a step; logs in {out}")


def main():
    args = parse_args()
    cfg = build_config(args)
    use_cuda = args.scale == "gpu" and torch.cuda.is_available()
    rank, world_size, device = setup_distributed(use_cuda)
    seed_everything(args.seed)
    steps = args.steps or cfg["TRAIN"]["STEPS"]
    if use_cuda:
        limit_memory(cfg["TRAIN"]["GPU_MEMORY_GB"], device)
    else:
        torch.set_num_threads(cfg["TRAIN"]["CPU_THREADS"])
    out = args.out or (tempfile.mkdtemp(prefix="deblur-") if rank == 0 else None)
    if rank == 0:
        os.makedirs(out, exist_ok=True)

    root = prepare_data(args, rank, world_size)
    loader = build_loader(root, cfg, steps, rank, world_size, args.seed, use_cuda)
    timing = TimingLogger(out, cfg["LOG"]["TIMING"] and rank == 0, use_cuda)
    with device:
        model = SpikeVRT(cfg["MODEL"], cfg["DATASET"], timing)
    if rank == 0:
        millions, batch_size = sum(p.numel() for p in model.parameters()) / 1e6, cfg["TRAIN"]["BATCH_SIZE"]
        print(f"{millions:.1f} M parameters, batch {batch_size} x {world_size}, {len(loader.dataset)} clips")
    criterion = RestorationLoss(cfg["LOSS"]).to(device)
    optimizer = build_optimizer(cfg["TRAIN"]["OPTIM"], model.parameters())
    if world_size > 1:
        model = DistributedDataParallel(model, device_ids=[device.index] if use_cuda else None)

    losses, step_seconds = train(cfg, steps, loader, model, criterion, optimizer, timing, device, rank, world_size)
    if rank == 0:
        write_summary(out, args, device, steps, cfg["TRAIN"]["BATCH_SIZE"] * world_size, losses, step_seconds)
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
