"""Run a training script with the first batches of its loader taken to the GPU beforehand, and repeated from there.

`python tests/gpu/on_device.py SCRIPT ARGUMENTS…`: what the script's own timer then says is its step without a data path.
"""
import runpy
import sys

import torch
from torch.utils.data import DataLoader

KEPT = 8  # batches
each = DataLoader.__iter__


def on_device(batch):
    if isinstance(batch, torch.Tensor):
        return batch.cuda()
    return type(batch)(map(on_device, batch)) if isinstance(batch, (list, tuple)) else batch


def repeated(loader):
    kept = [on_device(batch) for batch, _ in zip(each(loader), range(KEPT), strict=False)]
    for number in range(len(loader)):
        yield kept[number % len(kept)]


DataLoader.__iter__ = repeated
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
