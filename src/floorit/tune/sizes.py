"""How large a batch should be: which size to run next, which of those that ran to take, and why.

Each size is run for itself, in a fresh process under a hard cap, so that what does not fit is a result. What a size
takes of a budget (the GPU's memory, the host's, /dev/shm) is taken for a line over the sizes, with an upper bound, as
far as it is one: that says how large the next may be. Where it is none, sizes are halved towards the one that failed.
Taken is the knee, not the size that fills the card: the smallest that is as fast as any, up to GAIN.

It knows nothing of processes: planted curves test it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Literal

import msgspec

from floorit.stats import Estimate

GAIN = 1.03  # a larger batch that is not so many times as fast, by the sample, is not worth its size
BEYOND = 2  # sizes over the one that is taken that are to show that no larger one is faster
MOST = 9  # sizes that are run
ROUND = 8  # sizes over it are multiples of it
# An upper bound lies so many times the largest distance from the line over it, and at the least so much of its height.
_DISTANCES, _LEAST = 2.0, 0.01
AFFINE = 0.05  # of the height of a line: points further off than this are on none
SPREAD = 1.1  # by which two runs of one program differ on a machine that is in use (docs/measurements)
_NEAR = 1.125  # of two sizes, the one that fits and the one that does not: nearer ones need not be told apart

State = Literal["ran", "out of memory", "failed"]
By = Literal["knee", "memory", "data", "failure", "time"]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """One size, as it ran."""

    size: int
    state: State
    reason: str | None = None  # why it did not run
    rate: float | None = None  # samples a second
    peaks: dict[str, int] = {}  # of each budget, bytes at the most
    evaluated: bool = False  # whether an evaluation is in these peaks
    seconds: float = 0.0  # that it took


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget is used of by the size, as far as that is a line."""

    base: float
    slope: float
    distance: float  # of the point that is furthest off

    def at(self, size: float) -> float:
        """By the line."""
        return self.base + self.slope * size

    def most_at(self, size: float) -> float:
        """The upper bound."""
        return self.at(size) + max(_DISTANCES * self.distance, _LEAST * abs(self.at(size)))

    def largest(self, limit: float) -> float:
        """The size whose upper bound reaches a limit."""
        if self.slope <= 0:
            return math.inf
        return min(
            (limit - _DISTANCES * self.distance - self.base) / self.slope,
            (limit / (1 + _LEAST) - self.base) / self.slope,
        )


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """All sizes that were run, and the one that is to be tried."""

    own: int  # the program's
    limits: dict[str, int]  # of each budget, bytes that a size may take
    seen: list[Size]
    chosen: int | None  # None: no other is worth it
    by: By  # what keeps it from being larger
    why: str
    predicted: Estimate | None = None  # times as fast as its own size, by the sample
    beside: dict[str, list[Size]] = {}  # larger ones with something that makes room: what that is, as it is typed

    @property
    def seconds(self) -> float:
        """Of all runs."""
        return sum(one.seconds for one in (*self.seen, *(s for seen in self.beside.values() for s in seen)))


def fit(points: Sequence[tuple[int, int]]) -> Line | None:
    """A line through what sizes took, which one that is off does not move (Theil and Sen); None of fewer than two."""
    slopes = [(y - v) / (x - u) for (u, v), (x, y) in combinations(points, 2) if x != u]
    if not slopes:
        return None
    slope = median(slopes)
    base = median(y - slope * x for x, y in points)
    return Line(base=base, slope=slope, distance=max(abs(y - base - slope * x) for x, y in points))


def is_affine(line: Line, points: Sequence[tuple[int, int]]) -> bool:
    """Whether points lie on their line; two always do."""
    return line.distance <= AFFINE * max(y for _, y in points)


def fits(one: Size, limits: dict[str, int]) -> bool:
    """Whether it ran within every budget."""
    return one.state == "ran" and all(one.peaks.get(budget, 0) <= limit for budget, limit in limits.items())


def next_size(own: int, seen: Sequence[Size], limits: dict[str, int], most: int | None = None) -> int | None:
    """The size to run next; None where enough is known. `most` is what the data has room for."""
    good = sorted((one for one in seen if fits(one, limits)), key=lambda one: one.size)
    bad = min((one.size for one in seen if not fits(one, limits)), default=None)
    if not seen:
        return own
    if len(seen) >= MOST:
        return None
    if not good:
        assert bad is not None
        return rounded(bad / 2) if bad > 1 else None
    largest = good[-1]
    if not _is_worth_more(good):
        return None
    wanted = _between(largest.size, bad) if bad is not None else _doubled(good, limits)
    wanted = min(wanted, rounded(most)) if most is not None and wanted is not None else wanted
    return wanted if wanted is not None and wanted > largest.size else None


def _is_worth_more(good: Sequence[Size]) -> bool:
    """Whether a larger one may still be faster: two in a row that are not show it, one may have had bad luck."""
    return sum(one.size > knee(good).size for one in good) < BEYOND


def _between(good: int, bad: int) -> int | None:
    """Half way to the one that failed; None where they are near."""
    return rounded((good + bad) / 2) if bad > good * _NEAR else None


def _doubled(good: Sequence[Size], limits: dict[str, int]) -> int | None:
    """Twice the largest, or as much as every line's upper bound allows; where there is no line, it is tried."""
    wanted = float(good[-1].size * 2)
    for budget, limit in limits.items():
        points = [(one.size, one.peaks[budget]) for one in good if budget in one.peaks]
        line = fit(points)
        if line is not None and is_affine(line, points):
            wanted = min(wanted, line.largest(limit))
    size = rounded(wanted) if wanted >= 1 else 0
    return size if size > good[-1].size * (_NEAR if size < 2 * good[-1].size else 1) else None


def rounded(size: float) -> int:
    """Down to a whole number; large ones to a multiple."""
    whole = max(int(size), 1)
    return whole if whole < ROUND else whole - whole % ROUND


def knee(good: Sequence[Size]) -> Size:
    """The smallest that is as fast as any, by the sample."""
    best = max(one.rate or 0.0 for one in good)
    return min((one for one in good if (one.rate or 0.0) * GAIN >= best), key=lambda one: one.size)


def choose(
    own: int, seen: Sequence[Size], limits: dict[str, int], most: int | None = None, *, in_time: bool = True
) -> Sizes:
    """What came of it."""
    good = sorted((one for one in seen if fits(one, limits)), key=lambda one: one.size)
    if not good:
        why = f"no size ran: {seen[-1].reason}" if seen else "no size was run"
        why = why if in_time else f"there was no time to go below {seen[-1].size}"
        return Sizes(own=own, limits=limits, seen=list(seen), chosen=None, by="failure" if in_time else "time", why=why)
    taken = knee(good)
    by, why = _held(taken, good, seen, limits, most, in_time)
    mine = next((one for one in good if one.size == own), None)
    if taken.size == own:
        why = f"no larger batch is more than {GAIN - 1:.0%} faster by the sample; {why}" if len(good) > 1 else why
        return Sizes(own=own, limits=limits, seen=list(seen), chosen=None, by=by, why=why)
    predicted = gain(mine, taken) if mine is not None else None
    return Sizes(own=own, limits=limits, seen=list(seen), chosen=taken.size, by=by, why=why, predicted=predicted)


def _held(
    taken: Size, good: Sequence[Size], seen: Sequence[Size], limits: dict[str, int], most: int | None, in_time: bool
) -> tuple[By, str]:
    """What keeps the batch from being larger than the one that is taken."""
    largest = good[-1]
    if taken.size < largest.size:
        return "knee", f"{largest.size} is not {GAIN - 1:.0%} faster than {taken.size} by the sample"
    bad = min((one for one in seen if not fits(one, limits)), key=lambda one: one.size, default=None)
    if bad is not None and bad.state == "failed":
        return "failure", f"{bad.size} does not run: {bad.reason}"
    if bad is not None:
        return "memory", f"{bad.size} does not fit: {bad.reason or 'it takes more than is free'}"
    if most is not None and largest.size * 2 > most:
        return "data", f"the data has too few samples for {largest.size * 2}"
    if len(seen) >= MOST or not in_time:
        return "time", "there was no time for more sizes"
    return "memory", f"by the sizes that ran, no more than about {largest.size} would fit"


def gain(mine: Size, taken: Size) -> Estimate | None:
    """One run of each: the interval is as wide as runs here are known to differ."""
    if not mine.rate or not taken.rate:
        return None
    value = taken.rate / mine.rate
    return Estimate(value=value, low=value / SPREAD, high=value * SPREAD, n=1)
