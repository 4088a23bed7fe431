"""Make a small multi-camera data set laid out like nuScenes: six JPEGs a sample, calibration, boxes.

    python make_data.py --scale cpu --out DIR

DIR/samples/CAM_FRONT/train_0000.jpg ..., DIR/infos_train.json, DIR/infos_val.json
"""

import argparse
import hashlib
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import cv2
import numpy as np

VERSION = 1
SCALES = {
    "cpu": {"width": 1280, "height": 720, "train": 60, "val": 8, "reach": 24},
    "gpu": {"width": 1600, "height": 900, "train": 480, "val": 12, "reach": 48},
}
SINE = 0.8660254037844386  # of 60 degrees
# Which way each camera looks, as (cosine, sine) of its yaw. x is forward, y is left.
CAMERAS = {
    "CAM_FRONT": (1.0, 0.0),
    "CAM_FRONT_LEFT": (0.5, SINE),
    "CAM_BACK_LEFT": (-0.5, SINE),
    "CAM_BACK": (-1.0, 0.0),
    "CAM_BACK_RIGHT": (-0.5, -SINE),
    "CAM_FRONT_RIGHT": (0.5, -SINE),
}
MOUNTED = 1.5  # metres above the ground
# class: length and width on the ground, height (metres), colour
KINDS = {"vehicle": (4.4, 1.8, 1.6, (200, 60, 40)), "pedestrian": (0.8, 0.8, 1.7, (40, 80, 220))}


def default_place(scale):
    root = os.environ.get("FLOORIT_CASES") or Path.home() / ".cache" / "floorit-cases"
    return Path(root) / "bev" / scale


def calibration(camera, spec):
    """Intrinsics, and rotation and translation from the camera to the vehicle."""
    c, s = CAMERAS[camera]
    focal = 0.7 * spec["width"]
    return {
        "calibrated_sensor_token": f"{camera.lower()}_rig_a",
        "intrinsic": [[focal, 0.0, spec["width"] / 2], [0.0, focal, spec["height"] / 2], [0.0, 0.0, 1.0]],
        "rotation": [[s, 0.0, c], [-c, 0.0, s], [0.0, -1.0, 0.0]],
        "translation": [0.5 * c, 0.5 * s, MOUNTED],
    }


def scene(rng, reach):
    """Boxes around the vehicle as (class, x, y), in decimetres, and the half width of the road in metres."""
    boxes = []
    for kind, most in (("vehicle", 10), ("pedestrian", 8)):
        for _ in range(rng.integers(3, most)):
            x, y = (int(v) for v in rng.integers(-10 * reach, 10 * reach, 2))
            if abs(x) > 30 or abs(y) > 30:
                boxes.append((kind, x, y))
    return boxes, int(rng.integers(4, 10))


def background(rng, spec):
    """Houses, sky and road: blocks of several sizes, and grain."""
    h, w = spec["height"], spec["width"]
    picture = np.full((h, w, 3), 90, np.int16)
    picture[: h // 2] += 40
    for block, depth in ((w // 16, 30), (w // 64, 16), (5, 10)):
        coarse = rng.integers(-depth, depth + 1, (h // block, w // block, 3)).astype(np.int16)
        picture += coarse.repeat(block, axis=0).repeat(block, axis=1)
    return picture + rng.integers(-4, 5, (h, w, 1), dtype=np.int16)


def draw_boxes(picture, boxes, camera, spec):
    """Each box as an upright rectangle where it is seen; the far ones first. Plain arithmetic: the same everywhere."""
    c, s = CAMERAS[camera]
    focal, h, w = 0.7 * spec["width"], spec["height"], spec["width"]
    seen = []
    for kind, x10, y10 in boxes:
        x, y = x10 / 10 - 0.5 * c, y10 / 10 - 0.5 * s
        ahead = c * x + s * y
        if ahead > 1.5:
            seen.append((ahead, s * x - c * y, kind))
    for ahead, right, kind in sorted(seen, reverse=True):
        _, width, height, colour = KINDS[kind]
        left = int(w / 2 + focal * (right - width / 2) / ahead)
        over = int(w / 2 + focal * (right + width / 2) / ahead)
        top = int(h / 2 + focal * (MOUNTED - height) / ahead)
        bottom = int(h / 2 + focal * MOUNTED / ahead)
        region = picture[max(0, top) : max(0, min(h, bottom)), max(0, left) : max(0, min(w, over))]
        region[:] = region // 8 + np.array(colour, np.int16)


def write_sample(folder, split, number, spec):
    """Six pictures; returns what the infos say of them."""
    rng = np.random.Generator(np.random.PCG64([VERSION, ("train", "val").index(split), number]))
    boxes, road = scene(rng, spec["reach"])
    cams = {}
    for camera in CAMERAS:
        picture = background(rng, spec)
        draw_boxes(picture, boxes, camera, spec)
        name = f"samples/{camera}/{split}_{number:04d}.jpg"
        pixels = np.clip(picture, 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / name), pixels, [cv2.IMWRITE_JPEG_QUALITY, 80])
        cams[camera] = {"data_path": name, **calibration(camera, spec)}
    named = [[kind, x / 10, y / 10, *KINDS[kind][:2]] for kind, x, y in boxes]
    return {"token": f"{split}_{number:04d}", "cams": cams, "boxes": named, "road_half_width": road}


def make(scale, folder, jobs=None):
    """Write the data set unless it is there already."""
    spec, stamp, folder = SCALES[scale], Path(folder) / "done.json", Path(folder)
    content = json.dumps({"version": VERSION, "scale": scale, **spec})
    if stamp.exists() and stamp.read_text() == content:
        return
    print(f"rendering {spec['train'] + spec['val']} samples of {len(CAMERAS)} cameras into {folder}", flush=True)
    stamp.unlink(missing_ok=True)
    for camera in CAMERAS:
        (folder / "samples" / camera).mkdir(parents=True, exist_ok=True)
        for old in (folder / "samples" / camera).glob("*_[0-9][0-9][0-9][0-9].jpg"):
            old.unlink()
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        for split in ("train", "val"):
            tasks = [pool.submit(write_sample, folder, split, n, spec) for n in range(spec[split])]
            (folder / f"infos_{split}.json").write_text(json.dumps([task.result() for task in tasks]))
    stamp.write_text(content)


def digest(folder):
    """sha256 over names and contents of all files, in order of their names."""
    total = hashlib.sha256()
    for path in sorted([*folder.rglob("*.jpg"), *folder.glob("infos_*.json")]):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=sorted(SCALES), default="cpu")
    parser.add_argument("--out", type=Path, help="default: $FLOORIT_CASES or ~/.cache/floorit-cases, /bev/SCALE")
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
