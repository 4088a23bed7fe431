"""Figures and places as they are written for a person."""

from __future__ import annotations

import math
import os
from pathlib import Path

from floorit.analyse.ledger import Line
from floorit.analyse.needs import WAITING_FOR_WORKERS
from floorit.stats import Estimate, seconds

# What each phase is, and each cause for which a GPU is idle.
PHASES = {
    "data_wait": "waiting for the loader",
    "h2d": "copying to the GPU",
    "forward": "forward pass",
    "loss": "loss",
    "backward": "backward pass",
    "recompute": "recomputing in backward",
    "grad_sync": "waiting for other ranks",
    "optimizer": "optimizer",
    "sync": "blocked until the GPU was done",
    "logging": "logging",
    "checkpoint": "saving checkpoints",
    "eval": "evaluation",
    "epoch_gap": "starting the loader again",
    "other": "your own code in the loop",
    "unattributed": "not attributed to a line",
}
IDLE = {
    "data_wait": "waiting for data",
    "launch": "the host could not issue work fast enough",
    "sync": "the host was blocked, then had to issue work again",
    "h2d": "copying to the GPU",
    "comm": "waiting for other ranks",
    "other": "the program's own code, and the GPU's own pauses",
}
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))


def number(value: float) -> str:
    """Three figures, never as a power of ten."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def several(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(value: int | None) -> str:
    """Bytes in the largest unit that they reach."""
    if value is None:
        return "unknown"
    unit, scale = next(((unit, scale) for unit, scale in _UNITS if abs(value) >= scale), _UNITS[-1])
    return f"{number(value / scale)} {unit}"


def interval(estimate: Estimate) -> str:
    """A number with its interval."""
    return f"{seconds(estimate.value)} ({seconds(estimate.low)} to {seconds(estimate.high)})"


def speedup(estimate: Estimate) -> str:
    """A predicted speed-up: from the least that is expected to the most, and what is likely."""
    low, likely, high = (f"{value:.2f}" for value in (estimate.low, estimate.value, estimate.high))
    return f"{low} to {high}x as fast, likely {likely}" if low != high else f"{likely}x as fast"


def around(estimate: Estimate) -> str:
    """The least and the most that is expected, to stand beside what is likely; nothing where they are the same."""
    low, high = f"{estimate.low:.2f}", f"{estimate.high:.2f}"
    return f"{low} to {high}" if low != high else ""


def inside(line: Line) -> str:
    """What a line of the program's was calling in a library, to stand behind it."""
    if not line.inside:
        return ""
    return " -> waits for another process" if line.inside in WAITING_FOR_WORKERS else f" -> {line.inside}"


def place(line: Line) -> str:
    """file:line."""
    return f"{line.file}:{line.line}"


def relative(path: str) -> str:
    """A path as one would type it from here, if that is shorter."""
    short = os.path.relpath(path) if Path(path).is_absolute() else path
    return short if len(short) < len(path) and not short.startswith("../..") else path
