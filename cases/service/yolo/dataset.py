"""Pictures and boxes of a labelled set, letterboxed to the training size, with a cache of the decoded pictures."""

from pathlib import Path

import cv2
import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

MAX_BOXES = 16
GRAY = 114

cv2.setNumThreads(0)


class LabelledSet(Dataset):
    def __init__(self, root, split, settings, cache_dir, augment=False, seed=0):
        self.images = sorted(Path(root, "images", split).glob("*.jpg"))
        self.labels = [self.read_labels(Path(root, "labels", split, f"{path.stem}.txt")) for path in self.images]
        self.imgsz, self.augment, self.seed = settings["imgsz"], augment, seed
        self.cache, self.suffix = settings["cache"], settings["cache_suffix"]
        self.cache_dir = Path(cache_dir, split)
        self.ram = None
        if self.cache == "disk":
            self.cache_dir.mkdir(parents=True, exist_ok=True)
        elif self.cache == "ram":
            self.ram = [self.load_image(index) for index in range(len(self.images))]

    @staticmethod
    def read_labels(path):
        rows = [line.split() for line in path.read_text().splitlines()]
        return np.array(rows, np.float32).reshape(-1, 5)

    def __len__(self):
        return len(self.images)

    def load_image(self, index):
        """The picture at the training size; decoded once, then taken from the cache."""
        if self.ram is not None:
            return self.ram[index]
        cached = self.cache_dir / f"{self.images[index].stem}_{self.imgsz}{self.suffix}"
        if self.cache == "disk" and cached.exists():
            return np.load(cached)
        image = cv2.imread(str(self.images[index]))
        ratio = self.imgsz / max(image.shape[:2])
        size = round(image.shape[1] * ratio), round(image.shape[0] * ratio)
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        if self.cache == "disk":
            np.save(cached, image)
        return image

    def __getitem__(self, key):
        epoch, index = key
        image = self.load_image(index)
        labels = self.labels[index].copy()
        if self.augment:
            image, labels = augment(image, labels, np.random.default_rng((self.seed, epoch, index)))
        h, w = image.shape[:2]
        top, left = (self.imgsz - h) // 2, (self.imgsz - w) // 2
        canvas = np.full((self.imgsz, self.imgsz, 3), GRAY, np.uint8)
        canvas[top : top + h, left : left + w] = image
        targets = np.full((MAX_BOXES, 5), -1, np.float32)
        center, size = labels[:, 1:3] * (w, h) + (left, top), labels[:, 3:5] * (w, h)
        targets[: len(labels)] = np.concatenate([labels[:, :1], center - size / 2, center + size / 2], axis=1)
        return torch.from_numpy(canvas[..., ::-1].transpose(2, 0, 1).copy()), torch.from_numpy(targets)


def augment(image, labels, rng):
    """Horizontal flip and HSV jitter."""
    gains = rng.uniform(-1, 1, 3) * (0.015, 0.7, 0.4) + 1
    ramp = np.arange(256)
    hue, sat, val = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV))
    hsv = cv2.merge((
        cv2.LUT(hue, (ramp * gains[0] % 180).astype(np.uint8)),
        cv2.LUT(sat, np.clip(ramp * gains[1], 0, 255).astype(np.uint8)),
        cv2.LUT(val, np.clip(ramp * gains[2], 0, 255).astype(np.uint8)),
    ))
    image = cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
    if rng.integers(2):
        image = image[:, ::-1]
        labels[:, 1] = 1 - labels[:, 1]
    return image, labels


class EpochSampler(Sampler):
    """Shuffled (epoch, index), so that a sample's randomness does not depend on the worker that makes it.

    Each pass is the next epoch; an endless sampler goes on to it by itself.
    """

    def __init__(self, n_samples, used, seed=0, endless=False):
        self.n_samples, self.used, self.seed, self.endless = n_samples, used, seed, endless
        self.epoch = 0

    def __len__(self):
        return self.used

    def __iter__(self):
        while True:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(self.n_samples)[: self.used]
            keys = [(self.epoch, int(index)) for index in order]
            self.epoch += 1
            yield from keys
            if not self.endless:
                return
