"""What the machine did while the program ran, in at most a few hundred points."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from floorit.vitals import GpuSample, Sample

MOST_POINTS = 400
# What is drawn of the GPU that worked most: name, unit, and how it is read from a sample.
_OF_GPU: tuple[tuple[str, str, Callable[[GpuSample], float | None]], ...] = (
    ("GPU busy (driver)", "share", lambda gpu: gpu.busy),
    ("GPU active (counters)", "share", lambda gpu: gpu.graphics),
    ("SMs busy", "share", lambda gpu: gpu.sm),
    ("tensor cores busy", "share", lambda gpu: gpu.tensor),
    ("GPU power", "watts", lambda gpu: gpu.power),
    ("GPU power limit", "watts", lambda gpu: gpu.power_limit),
    ("GPU memory in use", "bytes", lambda gpu: gpu.memory),
    ("PCIe to the GPU", "rate", lambda gpu: gpu.received),
    ("PCIe from the GPU", "rate", lambda gpu: gpu.sent),
)
_OF_MACHINE: tuple[tuple[str, str, Callable[[Sample], float | None]], ...] = (
    ("cores busy", "share", lambda sample: sample.cpu),
    ("cores of training", "cores", lambda sample: sample.training),
    ("cores of workers", "cores", lambda sample: sample.workers),
    ("memory free", "bytes", lambda sample: float(sample.memory_free)),
    ("read from disk", "rate", lambda sample: sample.disk),
)


class Curve(msgspec.Struct, frozen=True):
    """One quantity over time. None: it was not told then."""

    name: str
    unit: str  # share, cores, watts, bytes or (bytes a second) rate
    values: list[float | None]


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Curves over the same moments, in seconds since the program started."""

    at: list[float]
    width: int  # samples that each point is the mean of
    curves: list[Curve]


def examine(samples: list[Sample], started: float) -> Samples | None:
    """The samples of a run; None where there are fewer than two."""
    if len(samples) < 2:
        return None
    width = math.ceil(len(samples) / MOST_POINTS)
    curves = [_curve(name, unit, [read(s) for s in samples], width) for name, unit, read in _OF_MACHINE]
    device = _busiest(samples)
    if device is not None:
        of_gpu = [next((gpu for gpu in s.gpus if gpu.uuid == device), None) for s in samples]
        for name, unit, read in _OF_GPU:
            values = [read(gpu) if gpu is not None else None for gpu in of_gpu]
            curves.append(_curve(name, unit, values, width))
    known = [curve for curve in curves if any(value is not None for value in curve.values)]
    at = _binned([s.at - started for s in samples], width)
    return Samples(at=[round(moment or 0.0, 2) for moment in at], width=width, curves=known)


def _busiest(samples: list[Sample]) -> str | None:
    """The GPU that drew most power, or was busiest where that is not told."""
    drawn: dict[str, float] = {}
    for sample in samples:
        for gpu in sample.gpus:
            drawn[gpu.uuid] = drawn.get(gpu.uuid, 0.0) + (gpu.power or gpu.busy or 0.0)
    return max(drawn, key=lambda uuid: drawn[uuid]) if drawn else None


def _curve(name: str, unit: str, values: list[float | None] | list[float], width: int) -> Curve:
    return Curve(name, unit, _binned(list(values), width))


def _binned(values: list[float | None] | list[float], width: int) -> list[float | None]:
    """Means of so many neighbours each."""
    bins = [[v for v in values[at : at + width] if v is not None] for at in range(0, len(values), width)]
    return [float(f"{np.mean(known):.4g}") if known else None for known in bins]
