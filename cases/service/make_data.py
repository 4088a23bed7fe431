"""A labelled set as the service exports it: camera pictures of parts on a workbench.

    python make_data.py --scale cpu --out DIR [--jobs N]

    images/{train,val}/000000.jpg  labels/{train,val}/000000.txt (class cx cy w h, relative to the picture)

Integer arithmetic only, so that every machine makes the same bytes.
"""

import argparse
import functools
import hashlib
import multiprocessing
import os
import tempfile

import cv2
import numpy as np

WIDTH, HEIGHT = 2048, 1536
# pictures for training and for validation
SCALES = {"cpu": {"train": 64, "val": 8}, "gpu": {"train": 1280, "val": 64}}
CLASSES = ("plate", "disc", "wedge", "cross")
STAMP = ".complete"


def write(path, content):
    """Whole or not at all, since somebody may be reading the same folder."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def bench(rng):
    """The background: coarse noise under fine noise, uint8."""
    h, w = HEIGHT // 2, WIDTH // 2
    total = np.zeros((h, w, 3), np.uint8)
    for cell, amplitude in ((64, 70), (16, 40), (4, 24), (1, 12)):
        noise = rng.integers(0, amplitude, (h // cell, w // cell, 3), dtype=np.uint8)
        total += noise.repeat(cell, 0).repeat(cell, 1)
    return total.repeat(2, 0).repeat(2, 1)


def shape(kind, h, w):
    """A mask of one part that fills its box."""
    y, x = np.ogrid[:h, :w]
    if kind == "disc":
        return ((2 * y - h) * w) ** 2 + ((2 * x - w) * h) ** 2 <= (h * w) ** 2
    if kind == "wedge":
        return abs(2 * x - w) * h <= y * w
    if kind == "cross":
        return (abs(2 * y - h) * 3 <= h) | (abs(2 * x - w) * 3 <= w)
    return np.ones((h, w), bool)


def make_picture(job, out, seed):
    split, number = job
    rng = np.random.Generator(np.random.PCG64([seed, int(split == "val"), number]))
    image = bench(rng)
    lines = []
    for _ in range(int(rng.integers(3, 9))):
        kind = int(rng.integers(len(CLASSES)))
        h, w = rng.integers(128, 576, 2).tolist()
        top, left = int(rng.integers(HEIGHT - h)), int(rng.integers(WIDTH - w))
        color = rng.integers(90, 256, 3).astype(np.uint8)
        image[top : top + h, left : left + w][shape(CLASSES[kind], h, w)] = color
        cx, cy = (2 * left + w) / (2 * WIDTH), (2 * top + h) / (2 * HEIGHT)
        lines.append(f"{kind} {cx:.6f} {cy:.6f} {w / WIDTH:.6f} {h / HEIGHT:.6f}\n")
    jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes()
    write(os.path.join(out, "images", split, f"{number:06d}.jpg"), jpeg)
    write(os.path.join(out, "labels", split, f"{number:06d}.txt"), "".join(lines).encode())


def make(scale, out, jobs=None):
    """Makes the data unless it is there."""
    stamp = os.path.join(out, STAMP)
    if os.path.exists(stamp):
        return
    for kind in ("images", "labels"):
        for split in ("train", "val"):
            os.makedirs(os.path.join(out, kind, split), exist_ok=True)
    pictures = [(split, number) for split, count in SCALES[scale].items() for number in range(count)]
    with multiprocessing.Pool(jobs or os.cpu_count()) as pool:
        pool.map(functools.partial(make_picture, out=out, seed=4), pictures, chunksize=8)
    write(stamp, f"{scale}\n".encode())


def digest(folder):
    """sha256 over the sorted files: names and contents."""
    total = hashlib.sha256()
    files = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name != STAMP]
    for path in sorted(files):
        total.update(os.path.relpath(path, folder).encode())
        with open(path, "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", choices=SCALES, default="cpu")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--hash", action="store_true", help="print the sha256 of the cpu scale")
    args = parser.parse_args()
    if args.hash:
        with tempfile.TemporaryDirectory() as folder:
            make("cpu", folder, args.jobs)
            print(digest(folder))
        return
    if not args.out:
        parser.error("--out is needed")
    make(args.scale, args.out, args.jobs)


if __name__ == "__main__":
    main()
