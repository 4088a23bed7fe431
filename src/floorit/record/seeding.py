"""Random numbers that the program does not seed itself: in trials they are the same in each."""

import os

from .imports import after_import


def seed(number):
    """Python's stream, numpy's and torch's begin there as soon as they are imported; what the program seeds, it seeds.

    Ranks differ, as they would by themselves. torch keeps a seed for GPUs until it uses them.
    """
    number += int(os.environ.get("RANK") or 0)
    for name in ("random", "numpy.random"):
        after_import(name, lambda module: module.seed(number))
    after_import("torch", lambda torch: torch.manual_seed(number))
