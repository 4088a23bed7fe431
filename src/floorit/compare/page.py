"""Two runs side by side as a page that needs no network."""

from __future__ import annotations

import itertools
import math
import shlex
from typing import Any

import msgspec
import numpy as np

from floorit.compare import proof, words
from floorit.compare.comparison import Comparison, Side
from floorit.compare.speed import Speed
from floorit.report import paths
from floorit.report.page import document
from floorit.report.words import PHASES, relative
from floorit.stats import Estimate

NAME = "compare.html"  # in the folder of B, where no other file is named
MOST_BINS = 150
MOST_ROWS = 20  # of the table that stands for the chart
_NARROWEST = math.log(1.1)  # how far the scale of speeds goes at least, to either side of 1


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a run that count, in bins of `width`, the last perhaps shorter."""

    width: int
    sizes: list[int]  # steps in each bin
    ends: list[float]  # seconds of steps that count, up to the end of each bin
    means: list[float]  # seconds of a step, or of a sample
    usual: float  # their median, without bins


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Where on a line of which the middle is 1 an interval lies: from 0, so many times slower, to 1, as much faster."""

    low: float
    value: float
    high: float
    within: tuple[float, float]


def render(comparison: Comparison, a: Side, b: Side) -> str:
    """The page; `a` and `b` are what was compared."""
    curves = [curve(side, comparison.per) for side in (a, b) if len(side.pace.seconds)]
    paces = dict(zip("ab", curves, strict=True)) if len(curves) == 2 else None
    values = {
        "comparison": comparison,
        "a": relative(comparison.a),
        "b": relative(comparison.b),
        "short": paths.short,
        "signed": words.signed,
        **_speed(comparison.speed),
        **_ledger(comparison),
        **_told(comparison),
        "paces": paces,
        "paces_rows": {side.upper(): rows(of) for side, of in (paces or {}).items()},
        "tried": proof.command(comparison, a),
        "started_in": a.report.program.cwd,
        "reports": [shlex.join(["floorit", "report", folder]) for folder in (comparison.a, comparison.b)],
    }
    return document.document("compare.html", values, {"paces": paces, "per": comparison.per})


def _speed(speed: Speed | None) -> dict[str, Any]:
    if speed is None:
        return {"speed": None}
    return {
        "speed": speed,
        "scale": scale(speed.ratio, speed.within),
        "rests_on": words.rests_on(speed),
        "rates": [(side, words.rate(of, speed.unit)) for side, of in (("A", speed.a), ("B", speed.b))],
    }


def _ledger(comparison: Comparison) -> dict[str, Any]:
    shown, rest = words.by_difference(comparison)
    rows = [*shown, *([rest] if rest is not None else [])]
    return {
        "phases": {**PHASES, "the rest": "the rest"},
        "rows": rows,
        "longest": max(comparison.step.a, comparison.step.b),
        "furthest": max((abs(row.difference) for row in rows), default=0.0),
    }


def _told(comparison: Comparison) -> dict[str, Any]:
    """In words: what was found and what was not the same."""
    found = itertools.groupby(words.findings(comparison.findings), key=lambda told: told[0])
    return {
        "findings": [(place, [said for _, said in told]) for place, told in found],
        "differences": [
            (title, [words.cells(title, change) for change in changes])
            for title, changes in words.differences(comparison)
        ],
        "same": words.alike(comparison),
    }


def curve(side: Side, per: str) -> Curve:
    """A run's steps over its time."""
    each = side.pace.seconds
    divided = each / side.pace.samples if per == "sample" and side.pace.samples else each
    width = math.ceil(len(each) / MOST_BINS)
    begins = np.arange(0, len(each), width)
    sizes = np.diff(np.append(begins, len(each)))
    return Curve(
        width=width,
        sizes=sizes.tolist(),
        ends=np.cumsum(np.add.reduceat(each, begins)).tolist(),
        means=(np.add.reduceat(divided, begins) / sizes).tolist(),
        usual=float(np.median(divided)),
    )


def rows(of: Curve) -> list[tuple[str, float, float]]:
    """Some twenty parts of a run: which of its steps that count, until when, and their mean."""
    each = math.ceil(len(of.means) / MOST_ROWS)
    found, first = [], 1
    for begin in range(0, len(of.means), each):
        sizes, means = of.sizes[begin : begin + each], of.means[begin : begin + each]
        count = sum(sizes)
        mean = sum(size * value for size, value in zip(sizes, means, strict=True)) / count
        numbers = f"{first:,} to {first + count - 1:,}" if count > 1 else f"{first:,}"
        found.append((numbers, of.ends[min(begin + each, len(of.ends)) - 1], mean))
        first += count
    return found


def scale(ratio: Estimate, within: Estimate) -> Scale:
    """Twice as fast lies as far from the middle as half as fast."""
    ends = [abs(math.log(end)) for end in (ratio.low, ratio.high)]
    reach = 1.2 * max(*ends, _NARROWEST)

    def at(times: float) -> float:
        return 0.5 + 0.5 * math.log(times) / reach

    return Scale(
        low=at(ratio.low), value=at(ratio.value), high=at(ratio.high), within=(at(within.low), at(within.high))
    )
