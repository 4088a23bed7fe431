"""Six cameras and a segmented bird's-eye view per sample."""

import json
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from bevseg.geometry import FrustumGeometry

REDUCED = {2: cv2.IMREAD_REDUCED_COLOR_2, 4: cv2.IMREAD_REDUCED_COLOR_4, 8: cv2.IMREAD_REDUCED_COLOR_8}


class NuScenesBEVDataset(Dataset):
    """Items are asked for as epoch * len + index, so that augmentation differs from epoch to epoch."""

    def __init__(self, root, split, cfg, seed=0):
        self.root = Path(root)
        self.infos = json.loads((self.root / f"infos_{split}.json").read_text())
        self.training = split == "train"
        self.seed = seed
        self.classes = cfg.class_names
        self.input_size = cfg.input_size
        self.reduced_decode = cfg.data.reduced_decode
        self.cache = {} if cfg.data.cache_geometry else None
        self.geometry = FrustumGeometry(cfg.grid_config, cfg.input_size, cfg.downsample)

    def __len__(self):
        return len(self.infos)

    def __getitem__(self, position):
        epoch, index = divmod(position, len(self.infos))
        info = self.infos[index]
        cams = list(info["cams"].values())
        rng = np.random.default_rng((self.seed, epoch, index))
        images = [self._load_image(cam, rng) for cam in cams]
        return {
            "img": torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous(),
            "cells": torch.from_numpy(self._cells(cams)),
            "gt_bev": torch.from_numpy(self._rasterize(info)),
        }

    def _scale_and_crop(self, cam):
        """The picture is scaled to the width of the input; sky is cut off until the height fits."""
        (_, _, cx), (_, _, cy), _ = cam["intrinsic"]
        scale = self.input_size[1] / (2 * cx)
        return scale, round(2 * cy * scale) - self.input_size[0]

    def _load_image(self, cam, rng):
        path = str(self.root / cam["data_path"])
        scale, crop = self._scale_and_crop(cam)
        if self.reduced_decode:
            image = cv2.imread(path, REDUCED[max(f for f in REDUCED if f * scale <= 1)])
        else:
            image = cv2.imread(path, cv2.IMREAD_COLOR)
        if image is None:
            raise FileNotFoundError(path)
        height, width = self.input_size
        image = cv2.resize(image, (width, height + crop), interpolation=cv2.INTER_LINEAR)[crop:]
        if self.training:
            image = self._photometric_distortion(image, rng)
        return image

    @staticmethod
    def _photometric_distortion(image, rng):
        levels = np.arange(256) * rng.uniform(0.8, 1.2) + rng.uniform(-20, 20)
        return cv2.LUT(image, np.clip(levels, 0, 255).astype(np.uint8))

    def _cells(self, cams):
        """Grid cells of the frustum's points."""
        scale, crop = self._scale_and_crop(cams[0])
        if self.cache is None:
            return self.geometry(cams, scale, crop)
        rig = tuple(cam["calibrated_sensor_token"] for cam in cams)
        if rig not in self.cache:
            self.cache[rig] = self.geometry(cams, scale, crop)
        return self.cache[rig]

    def _rasterize(self, info):
        """Boxes and road as (classes, y, x)."""
        nx, ny, _ = self.geometry.shape
        (x0, _, dx), (y0, _, dy), _ = self.geometry.bounds
        target = np.zeros((len(self.classes), ny, nx), np.float32)
        for kind, x, y, length, width in info["boxes"]:
            left, right = int((x - length / 2 - x0) / dx), int((x + length / 2 - x0) / dx) + 1
            low, high = int((y - width / 2 - y0) / dy), int((y + width / 2 - y0) / dy) + 1
            target[self.classes.index(kind), max(0, low) : max(0, high), max(0, left) : max(0, right)] = 1
        half = round(info["road_half_width"] / dy)
        target[self.classes.index("drivable_area"), ny // 2 - half : ny // 2 + half] = 1
        return target


class EpochSampler(Sampler):
    """A new order each time it is gone through, from the seed alone."""

    def __init__(self, length, seed):
        self.length, self.seed, self.epoch = length, seed, 0

    def __len__(self):
        return self.length

    def __iter__(self):
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.length) + self.epoch * self.length
        self.epoch += 1
        return iter(order.tolist())


def build_dataloader(dataset, cfg, seed):
    data = cfg.data
    return DataLoader(
        dataset,
        batch_size=data.samples_per_gpu,
        sampler=EpochSampler(len(dataset), seed) if dataset.training else None,
        num_workers=data.workers_per_gpu,
        prefetch_factor=data.prefetch_factor if data.workers_per_gpu else None,
        persistent_workers=data.persistent_workers and data.workers_per_gpu > 0,
        pin_memory=data.pin_memory,
        drop_last=dataset.training,
    )
