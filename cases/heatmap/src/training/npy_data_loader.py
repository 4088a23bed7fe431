"""Pre-batched .npy files: one file set is one batch, so the loader itself runs with a batch size of 1."""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

LOADER_ARGS = dict(batch_size=1, num_workers=2, pin_memory=torch.cuda.is_available())


class NpyBatchDataset(Dataset):
    """Item i is the whole batch that batch_<i>_*.npy hold."""

    def __init__(self, folder, augment, seed=0):
        self.files = sorted(Path(folder).glob("batch_*_images.npy"))
        if not self.files:
            raise FileNotFoundError(f"no batch_*_images.npy in {folder}")
        self.augment = augment
        self.seed = seed
        self.epoch = 0

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        images = self._load(index, "images")
        if self.augment:
            images = self._photometric(images, np.random.default_rng((self.seed, self.epoch, index)))
        return {
            "images": images,
            "keypoints": self._load(index, "keypoints"),
            "heatmaps": self._load(index, "heatmaps"),
            "offsets": self._load(index, "offsets"),
        }

    def _load(self, index, name):
        path = self.files[index]
        return np.load(path.with_name(path.name.replace("images", name)))

    @staticmethod
    def _photometric(images, rng):
        """Exposure, contrast and sensor noise, a different draw for each board."""
        out = np.empty_like(images)
        for i, image in enumerate(images):
            gain, bias = rng.uniform(0.7, 1.3), rng.uniform(-25, 25)
            noise = rng.standard_normal(image.shape, dtype=np.float32) * rng.uniform(2, 10)
            out[i] = np.clip(image * np.float32(gain) + np.float32(bias) + noise, 0, 255)
        return out


def create_loaders(folder, data_cfg, seed):
    """Training and validation loader."""
    args = dict(LOADER_ARGS)
    if data_cfg.get("loader_from_config", False):
        args.update(num_workers=data_cfg["num_workers"], prefetch_factor=data_cfg["prefetch_factor"])
    generator = torch.Generator().manual_seed(seed)
    train_set = NpyBatchDataset(Path(folder) / "train", augment=True, seed=seed)
    val_set = NpyBatchDataset(Path(folder) / "val", augment=False)
    train = DataLoader(train_set, shuffle=True, generator=generator, **args)
    val = DataLoader(val_set, shuffle=False, **args)
    return train, val
