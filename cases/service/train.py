"""Starts a training run of the labelling service.

    python train.py [--imgsz 640] [--batch -1] [--cache disk|ram|none]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback

import cv2
import torch
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from yolo.train_script import WARMUP, Trainer, log

# --fault-free NAME: settings that replace those of the config file
FAULT_FREE = {
    "table": {"auto_batch": "measure"},
    "cache": {"cache_suffix": ".npy"},
    "workers": {"keep_workers": True},
    "checkpoint-every": {"save_steps": 0},
    "val": {"val_period": 5},
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=("cpu", "gpu"), default="gpu" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--imgsz", type=int)
    parser.add_argument("--batch", type=int, help="-1: automatic")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--cache", choices=("disk", "ram", "none"))
    parser.add_argument("--vram-limit", type=float, metavar="GB", help="GPU memory the run may use")
    parser.add_argument("--ram-limit", type=float, metavar="GB", help="host memory the run may take to load its data")
    parser.add_argument("--fault-free", action="append", default=[], choices=[*FAULT_FREE, "all"], metavar="NAME",
                        help="one of %(choices)s; may be repeated")
    parser.add_argument("--data", help="folder of the labelled set; made if it is missing")
    parser.add_argument("--out", help="folder for weights, cache and summary")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load_settings(args):
    with open(os.path.join(HERE, "config", "training.yaml"), encoding="utf-8") as file:
        config = yaml.safe_load(file)
    settings = {**config["common"], **config[args.scale]}
    for name, changes in FAULT_FREE.items():
        if name in args.fault_free or "all" in args.fault_free:
            settings.update(changes)
    for name in ("steps", "imgsz", "batch", "workers", "cache"):
        if getattr(args, name) is not None:
            settings[name] = getattr(args, name)
    settings["vram_limit"], settings["ram_limit"] = args.vram_limit, args.ram_limit
    return settings


def prepare_data(args):
    cases = os.environ.get("FLOORIT_CASES") or os.path.expanduser("~/.cache/floorit-cases")
    root = args.data or os.path.join(cases, "service", args.scale)
    make_data = os.path.join(HERE, "make_data.py")
    subprocess.run([sys.executable, make_data, "--scale", args.scale, "--out", root], check=True)
    return root


def out_of_host_memory(error):
    """numpy, OpenCV, torch and fork each say it in their own way."""
    if isinstance(error, cv2.error):
        return error.code == cv2.Error.STS_NO_MEM
    if isinstance(error, OSError):
        return error.errno == 12
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def advise(error):
    if isinstance(error, torch.cuda.OutOfMemoryError):
        log("ERROR: CUDA out of memory. Reduce the batch size (from 24 to 16) or the image size (from 640 to 416).")
    elif out_of_host_memory(error):
        log("ERROR: out of system memory. Reduce workers (workers = 4) and make sure that the cache is disk, not ram.")
    else:
        log(f"ERROR: training failed: {error}")


def write_summary(out, args, trainer, steps, step_seconds):
    summary = {
        "case": "service",
        "scale": args.scale,
        "device": str(trainer.device),
        "steps": steps,
        "warmup": WARMUP if steps > WARMUP else 0,
        "step_seconds": step_seconds,
        "samples_per_second": trainer.batch / step_seconds,
        "losses": [float(loss) for loss in trainer.losses],
    }
    if trainer.device.type == "cuda":
        summary["memory_peak"] = torch.cuda.max_memory_allocated(trainer.device)
    with open(os.path.join(out, "summary.json"), "w", encoding="utf-8") as file:
        json.dump(summary, file)


def main():
    args = parse_args()
    settings = load_settings(args)
    device = torch.device("cuda", 0) if args.scale == "gpu" and torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cpu" and "threads" in settings:
        torch.set_num_threads(settings["threads"])
    out = args.out or tempfile.mkdtemp(prefix="service-")
    os.makedirs(out, exist_ok=True)
    try:
        trainer = Trainer(settings, prepare_data(args), out, device, args.seed)
        step_seconds = trainer.train(settings["steps"])
    except Exception as error:
        traceback.print_exc()
        advise(error)
        return 1
    write_summary(out, args, trainer, settings["steps"], step_seconds)
    log(f"Training finished: {step_seconds * 1e3:.0f} ms a step, weights in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
