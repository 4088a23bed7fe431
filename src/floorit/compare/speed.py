"""How much faster one recorded run was than another, and how far that can be trusted.

Of each run there is one observation. Its steps are not independent, so each run's mean step has an interval from the
means of 20 blocks of consecutive steps (stats.mean), and the two are added as independent errors. That covers what
varies within a run. What varies from one process to the next (where memory and threads come to lie, clocks, the
machine's other work) two runs cannot show: RUN_TO_RUN is added for it, so that nothing smaller is ever claimed.
Steps that grow or shrink while a run lasts add as much as its two halves differ by. A run that shared its cores with
other programs may have been slower than it had to be, by no more than what they used of the cores: its side of the
interval is as much longer. `floorit try` measures this noise instead, and can claim less.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from floorit.analyse.iterations import is_steady
from floorit.stats import Estimate, Floats, mean, rate

# How far two runs of one program lie apart, in 95 % of cases: twice the standard deviation of 2.5 % that is the median
# of the 32 A/A rows in docs/measurements/2026-11-15-overhead.md and 2026-11-16-gpu.md (0.6 to 5.2 %). There the two
# take turns; runs that lie apart in time may differ more.
RUN_TO_RUN = 0.05
# What a run must have for anything to be claimed of it: as much as `floorit try` has of each by default. Over less,
# what comes and goes within seconds (other programs, clocks) is not averaged.
ENOUGH_SECONDS, ENOUGH_STEPS = 10.0, 20

Word = Literal["faster", "slower", "unclear"]


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """One run's steps that count, with what lies between them, and the samples in one where they are known."""

    seconds: Floats
    samples: float | None
    slowed: float = 1.0  # how many times as long they may have taken because other programs used the cores

    @property
    def is_enough(self) -> bool:
        """Whether there is enough of it for a claim."""
        return len(self.seconds) >= ENOUGH_STEPS and float(self.seconds.sum()) >= ENOUGH_SECONDS


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as fast `b` was. Intervals hold in 95 %."""

    unit: Literal["samples", "steps"]
    a: Estimate  # a second; the interval is from blocks of steps, within the run
    b: Estimate
    within: Estimate  # b over a, with the spread within the runs alone
    ratio: Estimate  # the same with what varies from run to run; n is the number of runs of each
    run_to_run: float
    is_disturbed: bool  # whether more was added, for a run that was not steady or shared its cores
    verdict: Word


def compare(a: Pace, b: Pace) -> Speed | None:
    """The speeds of two runs; None where one has too few steps for an interval."""
    unit: Literal["samples", "steps"] = "samples" if a.samples and b.samples else "steps"
    steps_a, steps_b = mean(a.seconds), mean(b.seconds)
    if steps_a is None or steps_b is None or min(steps_a.n, steps_b.n) < 2:
        return None
    speed_a, speed_b = (
        rate(pace.samples or 1.0 if unit == "samples" else 1.0, steps) for pace, steps in ((a, steps_a), (b, steps_b))
    )
    middle = math.log(speed_b.value / speed_a.value)
    within = math.hypot(_relative(steps_a), _relative(steps_b))
    drift = math.hypot(_drift(a.seconds), _drift(b.seconds))
    half = math.hypot(within, math.log1p(RUN_TO_RUN), drift)
    ratio = _between(middle, half + math.log(a.slowed), half + math.log(b.slowed), 1)
    return Speed(
        unit=unit,
        a=speed_a,
        b=speed_b,
        within=_between(middle, within, within, min(steps_a.n, steps_b.n)),
        ratio=ratio,
        run_to_run=RUN_TO_RUN,
        is_disturbed=drift > 0 or max(a.slowed, b.slowed) > 1,
        verdict=_judge(ratio) if a.is_enough and b.is_enough else "unclear",
    )


def _judge(ratio: Estimate) -> Word:
    return "faster" if ratio.low > 1 else "slower" if ratio.high < 1 else "unclear"


def _relative(estimate: Estimate) -> float:
    """Half the width of an interval, as a share of the value."""
    return (estimate.high - estimate.low) / 2 / estimate.value


def _drift(seconds: Floats) -> float:
    """How far the two halves of a run that is not steady lie apart, as a logarithm."""
    if is_steady(seconds):
        return 0.0
    half = len(seconds) // 2
    return abs(math.log(float(np.median(seconds[half:])) / float(np.median(seconds[:half]))))


def _between(middle: float, below: float, above: float, n: int) -> Estimate:
    return Estimate(value=math.exp(middle), low=math.exp(middle - below), high=math.exp(middle + above), n=n)
