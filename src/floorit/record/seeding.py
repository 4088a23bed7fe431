"""Random numbers that the program does not seed itself: in trials they are the same in each."""

import os

from .imports import after_import

VARIABLE = "FLOORIT_SEED"  # of the environment, that asks for it


def seed(text):
    """Python's stream, numpy's and torch's begin there as soon as they are imported; what the program seeds, it seeds.

    Ranks differ, as they would by themselves. torch keeps a seed for GPUs until it uses them.
    """
    try:
        number = int(text) + int(os.environ.get("RANK") or 0)
    except ValueError:
        return  # then trials differ by it, which is seen where the program is compared with itself
    for name in ("random", "numpy.random"):
        after_import(name, lambda module: module.seed(number))
    after_import("torch", lambda torch: torch.manual_seed(number))
