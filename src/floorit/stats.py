"""Numbers with their spread."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
_Z = 1.959963984540054  # the normal quantile of 97.5 %
# Student's t, 97.5 %, by degrees of freedom (any table of the distribution).
_T = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
    11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093,
}  # fmt: skip
BLOCKS = 20  # consecutive observations are averaged into so many blocks: neighbours are not independent

_PREFIXES = ("", "k", "M", "G", "T", "P")


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number, its 95 % interval, and how many observations it rests on."""

    value: float
    low: float
    high: float
    n: int


def median(values: Floats) -> Estimate | None:
    """The median; its interval by order statistics, which assumes no distribution."""
    n = len(values)
    if n == 0:
        return None
    ordered = np.sort(values)
    half = _Z * math.sqrt(n) / 2
    low = max(0, math.floor(n / 2 - half) - 1)
    high = min(n - 1, math.ceil(n / 2 + half))
    return Estimate(value=float(np.median(ordered)), low=float(ordered[low]), high=float(ordered[high]), n=n)


def mean(values: Floats, *, least: float = -math.inf) -> Estimate | None:
    """The mean; its interval from the means of consecutive blocks. `least`: what is known to be no less than that."""
    n = len(values)
    if n == 0:
        return None
    value = float(np.mean(values))
    blocks = min(BLOCKS, n)
    if blocks < 2:
        return Estimate(value=value, low=value, high=value, n=n)
    means = np.array([part.mean() for part in np.array_split(values, blocks)])
    half = t(blocks - 1) * float(means.std(ddof=1)) / math.sqrt(blocks)
    return Estimate(value=value, low=max(value - half, least), high=value + half, n=n)


def t(freedom: int) -> float:
    """Student's t, 97.5 %; beyond the table by its expansion (Abramowitz and Stegun 26.7.5), within 0.0005."""
    return _T.get(freedom) or _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def share(value: float, n: int) -> Estimate:
    """A share that so many observations had; its interval is Wilson's."""
    middle = (value + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(value * (1 - value) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Estimate(value=value, low=max(middle - half, 0.0), high=min(middle + half, 1.0), n=n)


def ratio(above: Floats, below: Floats) -> Estimate | None:
    """How many times as large the one is as the other, measured in pairs: the geometric mean of their ratios."""
    logs = mean(np.log(above / below))
    if logs is None:
        return None
    return Estimate(value=math.exp(logs.value), low=math.exp(logs.low), high=math.exp(logs.high), n=logs.n)


def rate(per_second_of: float, seconds: Estimate) -> Estimate:
    """How many of something a second, where each takes `seconds`."""
    return Estimate(
        value=per_second_of / seconds.value,
        low=per_second_of / seconds.high,
        high=per_second_of / max(seconds.low, seconds.value / 10),
        n=seconds.n,
    )


def seconds(value: float) -> str:
    """A duration with three figures, in the unit that suits it."""
    if value >= 100:
        return f"{value:.0f} s"
    if value >= 1:
        return f"{value:.3g} s"
    if value >= 1e-3:
        return f"{value * 1e3:.3g} ms"
    return f"{value * 1e6:.3g} µs"


def duration(value: float) -> str:
    """A long time in two units, a short one in one."""
    whole, minutes, hours = round(value), round(value / 60), round(value / 3600)
    if value < 100:
        return seconds(value)
    if minutes < 60:
        return f"{whole // 60} min {whole % 60} s"
    if hours < 100:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def prefixed(value: float) -> str:
    """Three figures and a prefix of a thousand, for a unit to follow."""
    power = 0
    while value >= 1000 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_PREFIXES[power]}"
