"""A dataset of files: samples say what they hold. In the third epoch the last file is another one, and the first is
another one too, but of the same size and time: who has read it before cannot tell, who reads it again can."""

import json
import os
import sys

import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDER = sys.argv[1]
COUNT = 6


def write(index, seed):
    random = np.random.RandomState(seed)
    picture = random.randint(0, 255, (9, 7, 3), np.uint8)
    cv2.imwrite(f"{FOLDER}/{index}.png", picture)
    Image.fromarray(picture).save(f"{FOLDER}/{index}.jpg")
    np.save(f"{FOLDER}/{index}.npy", random.rand(5, 3).astype(">f4"))
    for kind in ("png", "jpg", "npy"):
        os.utime(f"{FOLDER}/{index}.{kind}", (seed, seed))


class Size(tuple):
    def __repr__(self):
        return "Size"


class Files(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        grey = cv2.imread(f"{FOLDER}/{index}.png", cv2.IMREAD_GRAYSCALE)
        coloured = cv2.imread(f"{FOLDER}/{index}.png")
        small = cv2.resize(coloured, (4, 3), interpolation=cv2.INTER_AREA)
        numbers = np.load(f"{FOLDER}/{index}.npy")
        by_name = np.asarray(Image.open(f"{FOLDER}/{index}.jpg"))
        with open(f"{FOLDER}/{index}.jpg", "rb") as file:
            picture = Image.open(file)
            facts = [picture.format, list(picture.size)]
            by_file = np.asarray(picture.convert("L"))
        total = float(coloured.sum() + numbers.sum() + by_name.sum() + by_file.sum() + grey.sum() + small.sum())
        coloured[:], numbers[:], small[:] = 0, 0, 0  # as augmentations do
        total += float(cv2.resize(coloured, (4, 3), interpolation=cv2.INTER_AREA).sum())  # nothing, if it is looked at
        coloured = cv2.imread(f"{FOLDER}/{index}.png")
        coloured.shape = 7, 9, 3
        total += float(cv2.resize(coloured, (4, 3), interpolation=cv2.INTER_AREA)[0, 0, 0])
        total += float(cv2.resize(cv2.imread(f"{FOLDER}/{index}.png"), Size((8, 6))).sum())
        total += float(cv2.resize(cv2.imread(f"{FOLDER}/{index}.png"), Size((5, 6))).sum())
        coloured = cv2.imread(f"{FOLDER}/{index}.png")
        coloured.resize((3, 7, 3), refcheck=False)
        total += float(coloured.sum())
        return torch.tensor([total]), json.dumps([index, total, str(numbers.dtype), facts])


def train():
    """What each sample was, in three epochs."""
    for index in range(COUNT):
        write(index, index + 1)
    model = nn.Linear(1, 1)
    seen = []
    for epoch in range(3):
        if epoch == 2:
            write(COUNT - 1, COUNT + 1)
            np.save(f"{FOLDER}/0.npy", np.zeros((5, 3), ">f4"))
            os.utime(f"{FOLDER}/0.npy", (1, 1))
        for x, facts in DataLoader(Files(), batch_size=2, num_workers=2):
            model(x).sum().backward()
            seen += [json.loads(fact) for fact in facts]
    return seen


if __name__ == "__main__":
    print(json.dumps({"seen": train()}))
