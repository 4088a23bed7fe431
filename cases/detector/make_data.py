"""Make the coco320 images and labels: JPEGs of long side 480 and YOLO label files.

python make_data.py --scale cpu|gpu --out DIR [--jobs N]
"""
import argparse
import hashlib
import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import cv2
import numpy as np

VERSION = 1
IMAGES = {'cpu': 384, 'gpu': 4096}
SHAPES = ((360, 480), (480, 360), (320, 480), (480, 480), (360, 480), (480, 320))  # height, width
CLASSES = 80


def default_dir(scale):
    root = os.environ.get('FLOORIT_CASES') or Path.home() / '.cache' / 'floorit-cases'
    return Path(root) / 'detector' / scale


def texture(rng, h, w, block, low, high):
    """Coarse random patches of block x block pixels."""
    small = rng.integers(low, high, (h // block + 1, w // block + 1, 3), dtype=np.int16)
    return small.repeat(block, 0).repeat(block, 1)[:h, :w]


def draw(index):
    """One image and its labels (class, x0, y0, x1, y1 in pixels)."""
    rng = np.random.Generator(np.random.PCG64(1000003 + index))
    h, w = SHAPES[int(rng.integers(len(SHAPES)))]
    img = texture(rng, h, w, 60, 40, 180) + texture(rng, h, w, 12, -20, 20)
    labels = []
    for _ in range(int(rng.integers(3, 12))):
        bh, bw = int(rng.integers(18, h // 2)), int(rng.integers(18, w // 2))
        y, x, cls = int(rng.integers(0, h - bh)), int(rng.integers(0, w - bw)), int(rng.integers(CLASSES))
        color = np.array([cls * 37 % 200, cls * 91 % 200, cls * 53 % 200], dtype=np.int16) + 28
        patch = texture(rng, bh, bw, 4 + cls % 7, -25, 26) + color
        yy, xx = np.ogrid[-bh + 1:bh:2, -bw + 1:bw:2]
        round_ = (yy * yy) * (bw * bw) + (xx * xx) * (bh * bh) <= (bh * bh) * (bw * bw)
        mask = round_ if cls % 2 else np.ones((bh, bw), dtype=bool)
        img[y:y + bh, x:x + bw][mask] = patch[mask]
        labels.append((cls, x, y, x + bw, y + bh))
    img += rng.integers(0, 16, img.shape, dtype=np.uint8)  # grain
    return img.clip(0, 255).astype(np.uint8), labels


def write(out, index):
    img, labels = draw(index)
    h, w = img.shape[:2]
    name = f'{index + 1:012d}'
    cv2.imwrite(str(out / 'images' / 'train2017' / f'{name}.jpg'), img, [cv2.IMWRITE_JPEG_QUALITY, 92])
    rows = ['%d %.6f %.6f %.6f %.6f\n' % (c, (x0 + x1) / (2 * w), (y0 + y1) / (2 * h), (x1 - x0) / w, (y1 - y0) / h)
            for c, x0, y0, x1, y1 in labels]
    (out / 'labels' / 'train2017' / f'{name}.txt').write_text(''.join(rows))


def make(scale, out, jobs=None):
    """Write the data set unless it is there already. Returns its folder."""
    out = Path(out)
    stamp, content = out / 'stamp.txt', f'coco320 {scale} {IMAGES[scale]} version {VERSION}\n'
    if stamp.exists() and stamp.read_text() == content:
        return out
    stamp.unlink(missing_ok=True)
    for kind in ('images', 'labels'):
        (out / kind / 'train2017').mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        list(pool.map(partial(write, out), range(IMAGES[scale]), chunksize=32))
    stamp.write_text(content)
    return out


def digest(folder):
    """sha256 over names and bytes of all files, sorted by name."""
    sha = hashlib.sha256()
    for file in sorted(f for f in Path(folder).rglob('*') if f.is_file()):
        sha.update(file.relative_to(folder).as_posix().encode() + b'\0' + file.read_bytes())
    return sha.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--scale', choices=sorted(IMAGES), default='cpu')
    parser.add_argument('--out', type=Path, help='default: ~/.cache/floorit-cases/detector/SCALE')
    parser.add_argument('--jobs', type=int, help='processes; default: one per core')
    parser.add_argument('--hash', action='store_true', help='print sha256 of the cpu data and leave nothing behind')
    opt = parser.parse_args()
    if opt.hash:
        folder = Path(tempfile.mkdtemp())
        try:
            print(digest(make('cpu', folder, opt.jobs)))
        finally:
            shutil.rmtree(folder)
    else:
        print(make(opt.scale, opt.out or default_dir(opt.scale), opt.jobs))


if __name__ == '__main__':
    main()
