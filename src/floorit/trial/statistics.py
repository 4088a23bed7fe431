"""How much faster, from pairs: an interval, the noise of this machine, and when there are pairs enough.

The unit is the pair, two fresh processes one after the other: steps of one process are not independent. The interval
is Student's over the pairs' log-ratios. The two sides of a pair have the same kind of noise, so their difference is
near symmetric whatever its shape, which is what Student's interval needs; a bootstrap of five to ten values covers
too little. Pairs are added until the interval is narrow, which happens sooner where the spread looks smaller than it
is: that costs up to two points in a hundred, so the interval is taken at NOMINAL to hold in CONFIDENCE of all tries.
tests/test_trial_statistics.py holds this by simulation.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np

from floorit import outlay
from floorit.stats import CONFIDENCE, Estimate
from floorit.trial.trial import Pair

Speed = Literal["faster", "not faster", "unclear"]

CLAIMED = 1.02  # no less is ever claimed (DESIGN section 6)
SMALL = 1.05  # a gain that has to be excluded, however loud the machine is, before a change is called not faster
FEWEST, MOST = outlay.PAIRS, 40  # pairs
NOMINAL = 0.97  # of an interval over a number of pairs that was fixed beforehand
SURE = 0.5  # of a gain, that an interval must leave of it
# Half the width of an interval that is narrow enough: of the time of a step, or of the gain where that is large.
NARROW, NARROW_OF_GAIN = 0.015, 0.1


def speedup(pairs: list[Pair], comparisons: int = 1) -> Estimate | None:
    """How many times as fast `b` is; the intervals of all `comparisons` together hold in 95 %."""
    found = _interval(_logs(pairs), comparisons)
    if found is None:
        return None
    middle, half = found
    return Estimate(value=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), n=len(pairs))


def noise(alike: list[Pair], pairs: int) -> float | None:
    """How far from 1 the program against itself comes to lie in 95 %, averaged over so many pairs: 0.01 is 1 %."""
    if not alike or not pairs:
        return None
    spread = math.sqrt(float(np.mean(_logs(alike) ** 2)))  # about 0, which is the truth here
    return math.expm1(student(1 - (1 - CONFIDENCE) / 2, len(alike)) * spread / math.sqrt(pairs))


def judge(gain: Estimate | None, band: float | None) -> Speed:
    """What may be said of a gain, where the program against itself shows `band`."""
    if gain is None or band is None:
        return "unclear"
    claimed = max(CLAIMED, 1 + band)
    if gain.low > 1 and gain.value >= claimed:
        return "faster"
    return "not faster" if gain.high <= min(claimed, SMALL) else "unclear"


def is_slower(gain: Estimate, band: float) -> bool:
    """Of what is not faster: whether it is surely slower."""
    return gain.high < 1 and gain.value <= 1 / max(CLAIMED, 1 + band)


def is_narrow(pairs: list[Pair], comparisons: int = 1) -> bool:
    """Whether more pairs would tell nothing that matters."""
    if len(pairs) < FEWEST:
        return False
    found = _interval(_logs(pairs), comparisons)
    if found is None:
        return False
    middle, half = found
    return half <= max(NARROW, NARROW_OF_GAIN * abs(middle)) or len(pairs) >= MOST


def is_clear(pairs: list[Pair], comparisons: int = 1) -> bool:
    """Whether most of a gain is sure already: more pairs would only tell how large it is."""
    if len(pairs) < FEWEST:
        return False
    gain = speedup(pairs, comparisons)
    return gain is not None and gain.value > SMALL and gain.low - 1 >= SURE * (gain.value - 1)


def _logs(pairs: list[Pair]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([pair.log_ratio for pair in pairs])


def _interval(logs: np.ndarray[tuple[int], np.dtype[np.float64]], comparisons: int) -> tuple[float, float] | None:
    """The middle, and half the width."""
    count = len(logs)
    if count < 2:
        return None
    quantile = student(1 - (1 - NOMINAL) / 2 / comparisons, count - 1)
    return float(logs.mean()), quantile * float(logs.std(ddof=1)) / math.sqrt(count)


def student(probability: float, freedom: int) -> float:
    """The quantile of Student's t for probabilities over a half (G. W. Hill, CACM algorithm 396, 1970)."""
    both = 2 * (1 - probability)
    if freedom == 1:
        return 1 / math.tan(both * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (both * (2 - both)) - 2)
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * both) ** (2 / freedom)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(both / 2)
        y = x**2
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y**2)
    else:
        tail = ((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3
        y = ((1 / tail + 0.5 / (freedom + 4)) * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)
