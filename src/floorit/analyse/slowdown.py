"""Training that slows down while it runs: from which step on, by how much, and in which phase."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from floorit.analyse.iterations import Bools
from floorit.analyse.ledger import Ledger, Line
from floorit.analyse.series import Series
from floorit.record import wire
from floorit.stats import Estimate, Floats, mean

BLOCKS = 100  # of consecutive steps, at most: neighbours are not independent
SHORTEST = 6  # steps of a block
SIDE = 5  # blocks that there must be before and after
NAMED = 1.1  # times as long as before: less is not told
SURELY = 0.9  # of all pairs of blocks, those in which the later one takes longer
OUTLIER = 3.0  # times the median step: longer ones are not usual
GOES_ON = 1.05  # the last quarter of what comes after, over its first


class SlowDown(msgspec.Struct, frozen=True, kw_only=True):
    """Steps take longer from one of them on."""

    step: int  # the first that does, counted from 1 as the run counts them, warm-up included
    ratio: Estimate  # of the usual step after to the one before
    before: float  # seconds of the median step
    after: float
    goes_on: bool  # whether it gets slower still
    phase: str  # that has grown most
    phase_before: float  # seconds a step
    phase_after: float
    where: list[Line]


def find(series: Series, ledger: Ledger) -> SlowDown | None:
    """The point after which steps take longer; None where there is none that stands out."""
    chosen = np.flatnonzero(series.is_counted & series.is_step)
    seconds = series.seconds[chosen]
    at = _change(seconds)
    if at is None:
        return None
    usual = [chosen[:at][_usual(seconds[:at])], chosen[at:][_usual(seconds[at:])]]
    ratio = _ratio(*(mean(series.seconds[steps]) for steps in usual))
    if ratio is None or ratio.value < NAMED or ratio.low <= 1.0:
        return None
    was, became = (series.phases[steps].mean(axis=0) for steps in usual)
    grown = int((became - was).argmax())
    phase = wire.PHASES[grown]
    return SlowDown(
        step=int(series.step[chosen[at]]) + 1,
        ratio=ratio,
        before=float(np.median(seconds[:at])),
        after=float(np.median(seconds[at:])),
        goes_on=_goes_on(seconds[at:]),
        phase=phase,
        phase_before=float(was[grown]),
        phase_after=float(became[grown]),
        where=ledger.where(phase),
    )


def _usual(seconds: Floats) -> Bools:
    """Without single steps that take many times as long."""
    usual: Bools = seconds <= OUTLIER * np.median(seconds)
    return usual


def _ratio(before: Estimate | None, after: Estimate | None) -> Estimate | None:
    """How many times as long; the errors of both add up as the sides of a right angle do."""
    if before is None or after is None or not before.value:
        return None
    value = after.value / before.value
    error = math.hypot(*((side.high - side.low) / 2 / side.value for side in (before, after)))
    return Estimate(value=value, low=value * (1 - error), high=value * (1 + error), n=before.n + after.n)


def _change(seconds: Floats) -> int | None:
    """The first of the later, longer ones.

    Blocks of steps are ranked by their medians: before the change ranks are below the middle one, so that their sum
    falls for as long as it lasts, whatever single steps do.
    """
    count = min(BLOCKS, len(seconds) // SHORTEST)
    if count < 2 * SIDE:
        return None
    blocks = np.array_split(seconds, count)
    middles = np.array([np.median(block) for block in blocks])
    ranks = np.sum([np.searchsorted(np.sort(middles), middles, side) for side in ("left", "right")], axis=0) - count
    split = int(ranks.cumsum()[SIDE - 1 : count - SIDE].argmin()) + SIDE
    longer = float((middles[split:, None] > middles[None, :split]).mean())
    if longer < SURELY:
        return None
    return _nearest(
        seconds, (np.median(np.concatenate(blocks[:split])) + np.median(np.concatenate(blocks[split:]))) / 2
    )


def _nearest(seconds: Floats, between: float) -> int:
    """The step from which on most are above that, as most before are below: the sum of ranks has its least near it."""
    balance = np.where(seconds > between, 1, -1).cumsum()
    return min(int(balance.argmin()) + 1, len(seconds) - 1)


def _goes_on(seconds: Floats) -> bool:
    quarter = max(len(seconds) // 4, 1)
    return float(np.median(seconds[-quarter:])) > GOES_ON * float(np.median(seconds[:quarter]))
