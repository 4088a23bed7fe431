"""Synthetic blurred/sharp sequences with spike streams: textured boxes over a panning background.

    python make_data.py --scale cpu --out DIR [--jobs N]

Integer arithmetic only, so that every machine makes the same bytes.
"""

import argparse
import functools
import hashlib
import io
import multiprocessing
import os
import tempfile

import cv2
import numpy as np

# sequences, frames of a sequence, frame size, exposures (= spike planes) per frame
SCALES = {"cpu": (10, 12, 96, 4), "gpu": (12, 20, 256, 8)}
STAMP = ".complete"
SPIKE_THRESHOLD = 1200


def write(path, content):
    """Whole or not at all, since somebody may be reading the same folder."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def write_jpeg(path, image):
    write(path, cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 92])[1].tobytes())


def texture(rng, size):
    """Noise in four octaves, uint8 (size, size, 3)."""
    total = np.zeros((size, size, 3), np.int64)
    for cell, amplitude in ((32, 110), (16, 60), (8, 50), (2, 35)):
        cells = -(-size // cell)
        noise = rng.integers(0, amplitude, (cells, cells, 3))
        total += noise.repeat(cell, 0).repeat(cell, 1)[:size, :size]
    return total.clip(0, 255).astype(np.uint8)


def draw(background, boxes, moment, size):
    """The scene at one moment: the background pans by one pixel, each box moves by its own velocity."""
    span = background.shape[0] - size
    shift = abs(moment % (2 * span) - span)
    image = background[shift : shift + size, shift : shift + size].copy()
    for patch, (y, x), (vy, vx) in boxes:
        side = patch.shape[0]
        top, left = (y + vy * moment) % (size - side), (x + vx * moment) % (size - side)
        image[top : top + side, left : left + side] = patch
    return image


def make_sequence(number, out, n_frames, size, exposures):
    rng = np.random.Generator(np.random.PCG64([2, number]))
    background = texture(rng, size + 64)
    boxes = []
    for _ in range(5):
        side = int(rng.integers(size // 8, size // 3))
        boxes.append((texture(rng, side), rng.integers(0, size, 2).tolist(), rng.integers(-3, 4, 2).tolist()))
    charge = rng.integers(0, SPIKE_THRESHOLD, (size, size))
    spikes = np.zeros((n_frames, exposures, size, size), bool)
    for kind in ("blur", "sharp"):
        os.makedirs(os.path.join(out, kind, f"{number:03d}"), exist_ok=True)
    for frame in range(n_frames):
        moments = [draw(background, boxes, frame * exposures + e, size) for e in range(exposures)]
        for e, image in enumerate(moments):
            charge += image.sum(axis=2, dtype=np.int64)
            spikes[frame, e] = charge >= SPIKE_THRESHOLD
            charge[spikes[frame, e]] -= SPIKE_THRESHOLD
        blurred = (np.sum(moments, axis=0, dtype=np.int64) // exposures).astype(np.uint8)
        write_jpeg(os.path.join(out, "blur", f"{number:03d}", f"{frame:05d}.jpg"), blurred)
        write_jpeg(os.path.join(out, "sharp", f"{number:03d}", f"{frame:05d}.jpg"), moments[exposures // 2])
    stream = io.BytesIO()
    np.save(stream, np.packbits(spikes, axis=-1))
    write(os.path.join(out, "spike", f"{number:03d}.npy"), stream.getvalue())


def make(scale, out, jobs=None):
    """Makes the data unless it is there."""
    stamp = os.path.join(out, STAMP)
    if os.path.exists(stamp):
        return
    n_sequences, n_frames, size, exposures = SCALES[scale]
    os.makedirs(os.path.join(out, "spike"), exist_ok=True)
    job = functools.partial(make_sequence, out=out, n_frames=n_frames, size=size, exposures=exposures)
    with multiprocessing.Pool(jobs or os.cpu_count()) as pool:
        pool.map(job, range(n_sequences), chunksize=1)
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
