"""Train a BEV segmentor.

    python train.py                                                    # by the machine: GPU or CPU config
    python train.py configs/baseline/lss_swin_nuscenes.py --batch-size 8 --out runs/high_memory
    python tools/train.py configs/baseline/lss_swin_nuscenes_optimized.py --work-dir runs/test --gpu-ids 0 \\
        --options runner.max_iters=100
"""

import argparse
import ast
import json
import logging
import random
import tempfile
from pathlib import Path

import cv2
import numpy as np
import torch

import make_data
from bevseg.config import Config
from bevseg.dataset import NuScenesBEVDataset, build_dataloader
from bevseg.runner import WARMUP, IterBasedRunner
from bevseg.segmentor import BEVSegmentor

CONFIGS = Path(__file__).resolve().parent / "configs" / "baseline"
DEFAULTS = {"gpu": CONFIGS / "lss_swin_nuscenes.py", "cpu": CONFIGS / "lss_swin_nuscenes_cpu.py"}


def parse_args():
    names = list(Config.fromfile(DEFAULTS["gpu"]).variants)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", type=Path, help="default: the baseline of the scale")
    parser.add_argument("--scale", choices=["cpu", "gpu"], default="gpu" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, help="samples_per_gpu")
    parser.add_argument("--steps", type=int, help="runner.max_iters")
    parser.add_argument(
        "--fault-free",
        action="append",
        default=[],
        choices=[*names, "all"],
        metavar="NAME",
        help=f"variant of the config: {', '.join(names)} or all; may be repeated",
    )
    parser.add_argument("--data", type=Path, help="where make_data.py put the samples")
    parser.add_argument("--out", "--work-dir", type=Path, help="work dir; default: a new folder under runs/")
    parser.add_argument("--gpu-ids", type=int, nargs=1, metavar="N", help="the GPU to train on; ignored without one")
    parser.add_argument("--options", type=option, nargs="+", default=[], metavar="ENTRY=VALUE", help="of the config")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def option(word):
    """runner.max_iters=100, as an entry's path and its value."""
    path, equals, value = word.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{word!r} is no ENTRY=VALUE")
    try:
        value = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        pass  # a word
    return path.split("."), value


def load_config(args):
    cfg = Config.fromfile(args.config or DEFAULTS[args.scale])
    for name in cfg.variants if "all" in args.fault_free else args.fault_free:
        cfg.merge(cfg.variants[name])
    for path, value in args.options:
        cfg.replace(path, value)
    if args.batch_size:
        cfg.data["samples_per_gpu"] = args.batch_size
    if args.steps:
        cfg.runner["max_iters"] = args.steps
    return cfg


def set_random_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def setup_multi_processes(cfg):
    cv2.setNumThreads(cfg.opencv_num_threads)
    if cfg.torch_num_threads:
        torch.set_num_threads(cfg.torch_num_threads)


def new_work_dir():
    Path("runs").mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="bev-", dir="runs"))


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    cfg = load_config(args)
    data = args.data or make_data.default_place(args.scale)
    make_data.make(args.scale, data)
    work_dir = args.out or new_work_dir()
    work_dir.mkdir(parents=True, exist_ok=True)

    setup_multi_processes(cfg)
    set_random_seed(args.seed)
    device = torch.device("cuda" if args.scale == "gpu" and torch.cuda.is_available() else "cpu")
    if args.gpu_ids and device.type == "cuda":
        torch.cuda.set_device(args.gpu_ids[0])
    datasets = [NuScenesBEVDataset(data, split, cfg, args.seed) for split in ("train", "val")]
    loaders = [build_dataloader(dataset, cfg, args.seed) for dataset in datasets]
    model = BEVSegmentor(cfg, datasets[0].geometry)
    runner = IterBasedRunner(model, loaders, cfg, device, work_dir)
    seconds = runner.run(cfg.runner.max_iters)

    batch = cfg.data.samples_per_gpu
    logging.info("batch size %d: %.2f iter/s, %.1f samples/s", batch, 1 / seconds, batch / seconds)
    summary = {
        "case": "bev",
        "scale": args.scale,
        "device": str(device),
        "steps": cfg.runner.max_iters,
        "warmup": WARMUP,
        "step_seconds": seconds,
        "samples_per_second": batch / seconds,
        "losses": torch.stack(runner.losses).tolist(),
    }
    (work_dir / "summary.json").write_text(json.dumps(summary))


if __name__ == "__main__":
    main()
