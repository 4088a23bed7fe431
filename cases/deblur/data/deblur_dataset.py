"""Clips of blurred frames, their spike stream and the sharp frames.

    blur/000/00000.jpg  sharp/000/00000.jpg  spike/000.npy (frames, bins, H, W / 8; packed bits)
"""

import os

import cv2
import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

cv2.setNumThreads(0)


def read_frames(folder):
    names = sorted(os.listdir(folder))
    return np.stack([cv2.imread(os.path.join(folder, name))[..., ::-1] for name in names])


class DeblurDataset(Dataset):
    def __init__(self, root, cfg, seed=0):
        self.root, self.seed = root, seed
        self.n_frames, self.crop = cfg["N_FRAMES"], cfg["CROP_SIZE"]
        self.sequences = sorted(os.listdir(os.path.join(root, "blur")))[: cfg["N_SEQUENCES"]]
        self.cache = {}
        self.fill_cache(cfg["CACHE_SIZE_GB"] * 1e9)
        starts = cfg["N_FRAMES_TOTAL"] - self.n_frames + 1
        self.clips = [(name, start) for name in self.sequences for start in range(starts)]

    def __len__(self):
        return len(self.clips)

    def load(self, name):
        path = os.path.join(self.root, "{}", name)
        spikes = np.load(path.format("spike") + ".npy")
        return read_frames(path.format("blur")), read_frames(path.format("sharp")), spikes

    def fill_cache(self, limit):
        """Decoded sequences in RAM; made before the workers fork, so they share it."""
        used = 0
        for name in self.sequences:
            arrays = self.load(name)
            used += sum(a.nbytes for a in arrays)
            if used > limit:
                break
            self.cache[name] = arrays

    def __getitem__(self, key):
        epoch, index = key
        name, start = self.clips[index]
        blur, sharp, spikes = self.cache.get(name) or self.load(name)
        rng = np.random.default_rng((self.seed, epoch, index))
        frames = slice(start, start + self.n_frames)
        size = blur.shape[1] - self.crop + 1
        top, left = int(rng.integers(size)), int(rng.integers(size))
        box = np.s_[top : top + self.crop, left : left + self.crop]
        flip = -1 if rng.integers(2) else 1

        def image(array):
            crop = array[frames][:, box[0], box[1]][:, :, ::flip].transpose(0, 3, 1, 2)
            return torch.from_numpy(np.ascontiguousarray(crop)).float().div_(255)

        planes = np.unpackbits(spikes[frames], axis=-1)[:, :, box[0], box[1]][..., ::flip]
        return {
            "blur": image(blur),
            "sharp": image(sharp),
            "spikes": torch.from_numpy(np.ascontiguousarray(planes)).float(),
        }


class ClipSampler(Sampler):
    """Iteration-based training: one long pass over shuffled epochs, split among the ranks."""

    def __init__(self, length, samples, rank=0, world_size=1, seed=0):
        self.length, self.samples = length, samples
        self.rank, self.world_size, self.seed = rank, world_size, seed

    def __len__(self):
        return self.samples

    def __iter__(self):
        produced = epoch = position = 0
        while True:
            order = np.random.default_rng((self.seed, epoch)).permutation(self.length)
            for index in order:
                if position % self.world_size == self.rank:
                    yield epoch, int(index)
                    produced += 1
                    if produced == self.samples:
                        return
                position += 1
            epoch += 1
