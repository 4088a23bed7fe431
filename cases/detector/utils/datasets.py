"""Images and labels of a folder in YOLO layout, with mosaic, mixup, perspective and HSV augmentation."""
import math
import os
from multiprocessing.pool import ThreadPool
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from utils.general import xywh2xyxy, xyxy2xywh

cv2.setNumThreads(0)  # OpenCV threads and DataLoader workers do not go together


def create_dataloader(path, img_size, batch_size, hyp, steps, seed=0, workers=8, cache=False, pin_memory=True):
    dataset = LoadImagesAndLabels(path, img_size, batch_size, augment=True, hyp=hyp, cache_images=cache, seed=seed)
    nw = min([os.cpu_count(), batch_size if batch_size > 1 else 0, workers])  # number of workers
    sampler = EpochSampler(len(dataset), steps * batch_size, seed)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, num_workers=nw, pin_memory=pin_memory,
                      collate_fn=LoadImagesAndLabels.collate_fn)


class EpochSampler(Sampler):
    """Shuffles anew each epoch without ending the iterator, so that workers are started once."""

    def __init__(self, n, total, seed):
        self.n, self.total, self.seed = n, total, seed

    def __len__(self):
        return self.total

    def __iter__(self):
        for epoch in range(math.ceil(self.total / self.n)):
            order = np.random.default_rng([self.seed, epoch]).permutation(self.n)
            for index in order[:self.total - epoch * self.n]:
                yield epoch, int(index)


class LoadImagesAndLabels(Dataset):
    def __init__(self, path, img_size=320, batch_size=16, augment=False, hyp=None, cache_images=False, seed=0):
        self.img_size, self.batch_size, self.augment, self.hyp, self.seed = img_size, batch_size, augment, hyp, seed
        self.img_files = sorted(str(f) for f in Path(path).glob('*.jpg'))
        if not self.img_files:
            raise FileNotFoundError(f'no images in {path}')
        self.labels = [self.read_labels(f) for f in self.img_files]
        self.n = len(self.img_files)
        self.imgs = [None] * self.n
        if cache_images:  # decode once, keep in RAM
            with ThreadPool(min(8, os.cpu_count())) as pool:
                self.imgs = pool.map(self.load_image, range(self.n))
            print(f'Caching images ({sum(x.nbytes for x in self.imgs) / 1e9:.1f}GB)')

    @staticmethod
    def read_labels(img_file):
        """(class, x, y, w, h), normalised."""
        file = Path(img_file.replace('images', 'labels')).with_suffix('.txt')
        return np.array([x.split() for x in file.read_text().splitlines()], dtype=np.float32).reshape(-1, 5)

    def __len__(self):
        return self.n

    def __getitem__(self, key):
        epoch, index = key if isinstance(key, tuple) else (0, key)
        hyp, s = self.hyp, self.img_size
        rng = np.random.default_rng([self.seed, epoch, index])
        if rng.random() < hyp['mosaic']:
            img, labels = self.load_mosaic(index, rng)
            if rng.random() < hyp['mixup']:
                img2, labels2 = self.load_mosaic(int(rng.integers(self.n)), rng)
                r = rng.beta(8.0, 8.0)
                img = (img * r + img2 * (1 - r)).astype(np.uint8)
                labels = np.concatenate((labels, labels2))
        else:
            img = self.load_image(index)
            shape = img.shape[:2]
            img, pad = letterbox(img, s)
            labels = self.pixel_labels(index, shape, pad)
            if self.augment:
                img, labels = random_perspective(img, labels, s, hyp, rng)

        if self.augment:
            img = augment_hsv(img, hyp['hsv_h'], hyp['hsv_s'], hyp['hsv_v'], rng)
            if rng.random() < hyp['fliplr']:
                img = img[:, ::-1]
                labels[:, [1, 3]] = s - labels[:, [3, 1]]

        labels_out = torch.zeros((len(labels), 6))
        if len(labels):
            labels[:, 1:] = xyxy2xywh(labels[:, 1:]) / s
            labels_out[:, 1:] = torch.from_numpy(labels)
        img = np.ascontiguousarray(img[:, :, ::-1].transpose(2, 0, 1))  # BGR to RGB, to 3xHxW
        return torch.from_numpy(img), labels_out, self.img_files[index]

    def load_image(self, index):
        """BGR image with its long side resized to img_size."""
        if self.imgs[index] is not None:
            return self.imgs[index]
        img = cv2.imread(self.img_files[index])
        r = self.img_size / max(img.shape[:2])
        if r != 1:
            size = (round(img.shape[1] * r), round(img.shape[0] * r))
            img = cv2.resize(img, size, interpolation=cv2.INTER_AREA if r < 1 else cv2.INTER_LINEAR)
        return img

    def pixel_labels(self, index, shape, offset):
        """Labels of an image of that shape as (class, x0, y0, x1, y1) in pixels, moved by an offset."""
        labels = self.labels[index].copy()
        h, w = shape
        labels[:, 1:] = xywh2xyxy(labels[:, 1:] * (w, h, w, h))
        labels[:, [1, 3]] += offset[0]
        labels[:, [2, 4]] += offset[1]
        return labels

    def load_mosaic(self, index, rng):
        """Four images around a random center on a canvas of twice the size, warped back to img_size."""
        s = self.img_size
        yc, xc = (int(v) for v in rng.integers(s // 2, 2 * s - s // 2, 2))
        indices = [index, *(int(i) for i in rng.integers(0, self.n, 3))]
        img4 = np.full((2 * s, 2 * s, 3), 114, dtype=np.uint8)
        labels4 = []
        for i, index in enumerate(indices):
            img = self.load_image(index)
            h, w = img.shape[:2]
            x0 = xc - w if i in (0, 2) else xc  # top left, top right, bottom left, bottom right
            y0 = yc - h if i in (0, 1) else yc
            x1a, y1a, x2a, y2a = max(x0, 0), max(y0, 0), min(x0 + w, 2 * s), min(y0 + h, 2 * s)
            img4[y1a:y2a, x1a:x2a] = img[y1a - y0:y2a - y0, x1a - x0:x2a - x0]
            labels4.append(self.pixel_labels(index, (h, w), (x0, y0)))
        labels4 = np.concatenate(labels4)
        np.clip(labels4[:, 1:], 0, 2 * s, out=labels4[:, 1:])
        return random_perspective(img4, labels4, s, self.hyp, rng)

    @staticmethod
    def collate_fn(batch):
        img, label, path = zip(*batch)
        for i, x in enumerate(label):
            x[:, 0] = i  # image of the batch, for build_targets()
        return torch.stack(img, 0), torch.cat(label, 0), path, None  # no shapes: a mosaic has none


def letterbox(img, size, color=(114, 114, 114)):
    """Pad to a square. Returns the image and the left and top padding."""
    h, w = img.shape[:2]
    left, top = (size - w) // 2, (size - h) // 2
    img = cv2.copyMakeBorder(img, top, size - h - top, left, size - w - left, cv2.BORDER_CONSTANT, value=color)
    return img, (left, top)


def augment_hsv(img, hgain, sgain, vgain, rng):
    r = rng.uniform(-1, 1, 3) * [hgain, sgain, vgain] + 1
    hue, sat, val = cv2.split(cv2.cvtColor(img, cv2.COLOR_BGR2HSV))
    x = np.arange(0, 256, dtype=r.dtype)
    lut_hue = ((x * r[0]) % 180).astype(np.uint8)
    lut_sat = np.clip(x * r[1], 0, 255).astype(np.uint8)
    lut_val = np.clip(x * r[2], 0, 255).astype(np.uint8)
    img_hsv = cv2.merge((cv2.LUT(hue, lut_hue), cv2.LUT(sat, lut_sat), cv2.LUT(val, lut_val)))
    return cv2.cvtColor(img_hsv, cv2.COLOR_HSV2BGR)


def random_perspective(img, targets, size, hyp, rng):
    """Rotate, scale, shear, shift and tilt; the result is size x size. Labels (class, x0, y0, x1, y1) move along."""
    C = np.eye(3)  # center
    C[0, 2], C[1, 2] = -img.shape[1] / 2, -img.shape[0] / 2
    P = np.eye(3)  # perspective, of a 640 px canvas
    P[2, :2] = rng.uniform(-hyp['perspective'], hyp['perspective'], 2) * 640 / max(img.shape)
    R = np.eye(3)  # rotation and scale
    s = rng.uniform(1 - hyp['scale'], 1 + hyp['scale'])
    R[:2] = cv2.getRotationMatrix2D((0, 0), rng.uniform(-hyp['degrees'], hyp['degrees']), s)
    S = np.eye(3)  # shear
    S[0, 1], S[1, 0] = np.tan(np.radians(rng.uniform(-hyp['shear'], hyp['shear'], 2)))
    T = np.eye(3)  # translation
    T[:2, 2] = rng.uniform(0.5 - hyp['translate'], 0.5 + hyp['translate'], 2) * size
    M = T @ S @ R @ P @ C

    if hyp['perspective']:
        img = cv2.warpPerspective(img, M, dsize=(size, size), borderValue=(114, 114, 114))
    else:
        img = cv2.warpAffine(img, M[:2], dsize=(size, size), borderValue=(114, 114, 114))

    n = len(targets)
    if n:
        xy = np.ones((n * 4, 3))
        xy[:, :2] = targets[:, [1, 2, 3, 4, 1, 4, 3, 2]].reshape(n * 4, 2)  # four corners
        xy = xy @ M.T
        xy = (xy[:, :2] / xy[:, 2:3]).reshape(n, 8)
        x, y = xy[:, [0, 2, 4, 6]], xy[:, [1, 3, 5, 7]]
        new = np.stack((x.min(1), y.min(1), x.max(1), y.max(1)), 1).clip(0, size)
        keep = box_candidates(targets[:, 1:5] * s, new)
        targets = targets[keep]
        targets[:, 1:5] = new[keep]
    return img, targets


def box_candidates(box1, box2, wh_thr=2, ar_thr=20, area_thr=0.1, eps=1e-9):
    """Which boxes are still worth learning after (box2) the warp of what they were before (box1)."""
    w1, h1 = (box1[:, 2:] - box1[:, :2]).T
    w2, h2 = (box2[:, 2:] - box2[:, :2]).T
    ar = np.maximum(w2 / (h2 + eps), h2 / (w2 + eps))
    return (w2 > wh_thr) & (h2 > wh_thr) & (w2 * h2 / (w1 * h1 + eps) > area_thr) & (ar < ar_thr)
