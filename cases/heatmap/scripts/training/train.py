"""Train the fiducial detector.

    python scripts/training/train.py
    python scripts/training/train.py --config configs/fiducial_gpu.yaml
"""

import argparse
import json
import logging
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import make_data  # noqa: E402
from src.models.lite_hrnet import LiteHRNet  # noqa: E402
from src.training.npy_data_loader import create_loaders  # noqa: E402
from src.training.training_engine import WARMUP, TrainingEngine  # noqa: E402

# name given to --fault-free -> entry of the config that it sets to true; without the entry it is off
SWITCHES = {
    "targets": ("train", "use_precomputed_targets"),
    "workers": ("data", "loader_from_config"),
    "cudnn": ("train", "cudnn_from_config"),
    "async-copy": ("train", "non_blocking"),
    "tf32": ("train", "allow_tf32"),
    "launch": ("train", "cuda_graphs"),
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=["cpu", "gpu"], default="gpu" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--config", type=Path, help="default: configs/fiducial_SCALE.yaml")
    parser.add_argument("--steps", type=int, help="iterations to train")
    parser.add_argument(
        "--fault-free",
        action="append",
        default=[],
        choices=[*SWITCHES, "all"],
        metavar="NAME",
        help=f"{', '.join(SWITCHES)} or all; may be repeated",
    )
    parser.add_argument("--data", type=Path, help="where make_data.py put the batches")
    parser.add_argument("--out", type=Path, help="default: a new folder under runs/")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load_config(args):
    path = args.config or ROOT / "configs" / f"fiducial_{args.scale}.yaml"
    cfg = yaml.safe_load(path.read_text())
    for name in SWITCHES if "all" in args.fault_free else args.fault_free:
        section, entry = SWITCHES[name]
        cfg[section][entry] = True
    return cfg


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def setup_backends(train_cfg):
    if train_cfg["threads"]:
        torch.set_num_threads(train_cfg["threads"])
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if train_cfg.get("cudnn_from_config", False):
        torch.backends.cudnn.deterministic = False
        torch.backends.cudnn.benchmark = train_cfg["cudnn_benchmark"]
    torch.backends.cuda.matmul.allow_tf32 = train_cfg["allow_tf32"]
    torch.backends.cudnn.allow_tf32 = train_cfg["allow_tf32"]


def new_run_folder():
    Path("runs").mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="heatmap-", dir="runs"))


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    cfg = load_config(args)
    steps = args.steps or cfg["train"]["steps"]
    data = args.data or make_data.default_place(args.scale)
    make_data.make(args.scale, data)
    out = args.out or new_run_folder()
    out.mkdir(parents=True, exist_ok=True)

    set_seed(args.seed)
    setup_backends(cfg["train"])
    device = torch.device("cuda" if args.scale == "gpu" and torch.cuda.is_available() else "cpu")
    model = LiteHRNet(cfg["data"]["keypoints"], **cfg["model"])
    logging.info("%.2f M parameters on %s", sum(p.numel() for p in model.parameters()) / 1e6, device)
    engine = TrainingEngine(model, create_loaders(data, cfg["data"], args.seed), cfg, device, out)
    seconds = engine.fit(steps)

    speed = cfg["data"]["batch_size"] / seconds
    logging.info("%.1f ms an iteration, %.0f boards/s", seconds * 1e3, speed)
    summary = {
        "case": "heatmap",
        "scale": args.scale,
        "device": str(device),
        "steps": steps,
        "warmup": WARMUP,
        "step_seconds": seconds,
        "samples_per_second": speed,
        "losses": torch.stack(engine.losses).tolist(),
    }
    (out / "summary.json").write_text(json.dumps(summary))


if __name__ == "__main__":
    main()
