"""Render synthetic boards with two fiducials, encode the targets, and save everything in batches of .npy files.

    python make_data.py --scale cpu --out DIR

DIR/{train,val}/batch_0000_{images,keypoints,heatmaps,offsets}.npy
"""

import argparse
import hashlib
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from src.preprocessing.encoding import bump, sigma_of

VERSION = 1
STRIDE = 4
KEYPOINTS = 2
SCALES = {
    "cpu": {"batch": 64, "size": 96, "radius": 7, "train": 30, "val": 2},
    "gpu": {"batch": 256, "size": 128, "radius": 2, "train": 60, "val": 2},
}


def default_place(scale):
    root = os.environ.get("FLOORIT_CASES") or Path.home() / ".cache" / "floorit-cases"
    return Path(root) / "heatmap" / scale


def draw_board(rng, size):
    """Solder mask with pads and traces, as the inspection camera sees it: grayscale."""
    coarse = rng.integers(60, 110, (8, 8)).astype(np.int16)
    board = np.kron(coarse, np.ones((size // 8, size // 8), np.int16))
    for _ in range(10):
        x, y = rng.integers(0, size - 8, 2)
        w, h = rng.integers(3, 24, 2)
        board[y : y + h, x : x + w] = rng.integers(30, 190)
    return board + rng.integers(-12, 13, (size, size), dtype=np.int16)


def draw_disc(board, x, y, level):
    ys, xs = np.ogrid[: board.shape[0], : board.shape[1]]
    distance2 = (xs - x) ** 2 + (ys - y) ** 2
    board[distance2 <= 49] = 20
    board[distance2 <= 25] = level


def draw_cross(board, x, y, level):
    board[max(0, y - 7) : y + 8, max(0, x - 7) : x + 8] = 20
    board[max(0, y - 5) : y + 6, max(0, x - 1) : x + 2] = level
    board[max(0, y - 1) : y + 2, max(0, x - 5) : x + 6] = level


def draw_sample(rng, size):
    """An image, and (x, y, visible) of its disc and its cross."""
    board = draw_board(rng, size)
    keypoints = np.zeros((KEYPOINTS, 3), np.int64)
    for k, draw in enumerate((draw_disc, draw_cross)):
        x, y = rng.integers(4, size - 4, 2)
        level, visible = rng.integers(180, 240), rng.integers(0, 20) > 0
        if visible:
            draw(board, x, y, level)
        keypoints[k] = x, y, visible
    return np.clip(board, 0, 255).astype(np.uint8), keypoints


def encode(keypoints, size, radius):
    """Heatmaps and offset maps of a batch of keypoints."""
    cells, window = size // STRIDE, np.arange(-radius, radius + 1)
    sigma = sigma_of(radius)
    stamp = np.array([[bump(int(dx * dx + dy * dy), sigma) for dx in window] for dy in window], np.float32)
    padded = np.zeros((len(keypoints), KEYPOINTS, cells + 2 * radius, cells + 2 * radius), np.float32)
    offsets = np.zeros((len(keypoints), 2 * KEYPOINTS, cells, cells), np.float32)
    for i, k in np.argwhere(keypoints[:, :, 2]):
        x, y = keypoints[i, k, :2]
        cx, cy = x // STRIDE, y // STRIDE
        padded[i, k, cy : cy + 2 * radius + 1, cx : cx + 2 * radius + 1] = stamp
        offsets[i, 2 * k, cy, cx] = x / STRIDE - cx
        offsets[i, 2 * k + 1, cy, cx] = y / STRIDE - cy
    return padded[:, :, radius : radius + cells, radius : radius + cells].copy(), offsets


def write_batch(folder, split, number, spec):
    rng = np.random.Generator(np.random.PCG64([VERSION, ("train", "val").index(split), number]))
    images, keypoints = zip(*(draw_sample(rng, spec["size"]) for _ in range(spec["batch"])), strict=True)
    keypoints = np.stack(keypoints)
    heatmaps, offsets = encode(keypoints, spec["size"], spec["radius"])
    arrays = {"images": np.stack(images)[:, None], "keypoints": keypoints, "heatmaps": heatmaps, "offsets": offsets}
    for name, array in arrays.items():
        np.save(folder / split / f"batch_{number:04d}_{name}.npy", array)


def make(scale, folder, jobs=None):
    """Write the data set unless it is there already."""
    spec, stamp, folder = SCALES[scale], Path(folder) / "done.json", Path(folder)
    content = json.dumps({"version": VERSION, "scale": scale, **spec})
    if stamp.exists() and stamp.read_text() == content:
        return
    print(f"rendering {spec['train'] + spec['val']} batches of {spec['batch']} boards into {folder}", flush=True)
    stamp.unlink(missing_ok=True)
    for split in ("train", "val"):
        (folder / split).mkdir(parents=True, exist_ok=True)
        for old in (folder / split).glob("batch_[0-9]*_*.npy"):
            old.unlink()
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        tasks = [
            pool.submit(write_batch, folder, split, n, spec) for split in ("train", "val") for n in range(spec[split])
        ]
        for task in tasks:
            task.result()
    stamp.write_text(content)


def digest(folder):
    """sha256 over names and contents of all files, in order of their names."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.npy")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=sorted(SCALES), default="cpu")
    parser.add_argument("--out", type=Path, help="default: $FLOORIT_CASES or ~/.cache/floorit-cases, /heatmap/SCALE")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--hash", action="store_true", help="print the sha256 of the files of the CPU scale")
    args = parser.parse_args()
    scale = "cpu" if args.hash else args.scale
    folder = args.out or default_place(scale)
    make(scale, folder, args.jobs)
    if args.hash:
        print(digest(folder))


if __name__ == "__main__":
    main()
