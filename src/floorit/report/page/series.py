"""The ledger step by step, in at most a thousand bins; steps far longer than the others are kept singly."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import ORDER, Entry
from floorit.analyse.series import find
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Estimate, Floats, mean

MOST_BINS = 1000
MOST_SINGLES = 200
LONG = 3.0  # times the median step: longer ones are kept singly


class Single(msgspec.Struct, frozen=True):
    """A step that took far longer than others, and what most of the difference is."""

    step: int
    seconds: float
    phase: str


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """Every step with what came between it and the next; in bins of `width` steps, the last perhaps shorter."""

    count: int
    width: int
    warmup: int
    watched: list[tuple[int, int]]  # first and last of the steps that were slowed down by being watched
    phases: list[str]  # those that took any time
    means: list[list[float]]  # seconds a step of each phase, by bin
    least: list[float]  # seconds of the shortest step of each bin
    most: list[float]
    singles: list[Single]
    long: int  # how many steps there are such as the singles
    usual: float  # seconds of the median step with what came after it
    spread: dict[str, Estimate]  # seconds a step of each phase, after warm-up


def examine(process: Process, iterations: Iterations, ledger: list[Entry]) -> Steps:
    """The steps of a process, divided as its ledger is."""
    each = _by_phase(process, iterations, ledger)
    totals = each.sum(axis=1)
    phases = [phase for phase, spent in zip(ORDER, each.sum(axis=0).tolist(), strict=True) if spent > 0]
    columns = [ORDER.index(phase) for phase in phases]
    width = max(math.ceil(len(totals) / MOST_BINS), 1)
    begins = np.arange(0, len(totals), width)
    sizes = np.diff(np.append(begins, len(totals)))
    usual = float(np.median(totals[iterations.warmup :]))
    long = np.flatnonzero(totals > LONG * usual)
    return Steps(
        count=len(totals),
        width=width,
        warmup=iterations.warmup,
        watched=_stretches(np.flatnonzero(iterations.slowed)),
        phases=phases,
        means=_short(np.add.reduceat(each[:, columns], begins, axis=0).T / sizes),
        least=_short(np.minimum.reduceat(totals, begins)),
        most=_short(np.maximum.reduceat(totals, begins)),
        singles=_singles(each, totals, long),
        long=len(long),
        usual=usual,
        spread=_spread(each, iterations, ledger),
    )


def _by_phase(process: Process, iterations: Iterations, ledger: list[Entry]) -> Floats:
    """Seconds of each step in each phase of the ledger's order, with what lies between it and the next."""
    steps = find(process, iterations)
    table = np.zeros((iterations.count, len(wire.PHASES)))
    np.add.at(table, steps.step, steps.phases)
    found = dict(zip(wire.PHASES, table.T, strict=True))
    known = _attributed(ledger)
    found["unattributed"] = found["other"] * (1 - known)
    found["other"] = found["other"] * known
    each: Floats = np.stack([found[phase] for phase in ORDER], axis=1)
    return each


def _stretches(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
    return [(int(run[0]), int(run[-1])) for run in runs]


def _attributed(ledger: list[Entry]) -> float:
    """Of the program's own code, the part of which a line is known."""
    of = {entry.phase: entry.seconds for entry in ledger}
    own = of.get("other", 0.0) + of.get("unattributed", 0.0)
    return of.get("other", 0.0) / own if own else 1.0


def _singles(each: Floats, totals: Floats, long: NDArray[np.int64]) -> list[Single]:
    """The longest, in their order, each with the phase that is furthest from its own median."""
    chosen = np.sort(long[np.argsort(-totals[long], kind="stable")[:MOST_SINGLES]])
    beyond = (each[chosen] - np.median(each, axis=0)).argmax(axis=1) if len(chosen) else []
    return [
        Single(int(step), _shortened(float(totals[step])), ORDER[phase])
        for step, phase in zip(chosen, beyond, strict=True)
    ]


def _spread(each: Floats, iterations: Iterations, ledger: list[Entry]) -> dict[str, Estimate]:
    """The ledger's seconds with the interval of their mean over the steps."""
    counted = each[iterations.warmup :][~iterations.slowed[iterations.warmup :]]
    found = {}
    for entry in ledger:
        over_steps = mean(counted[:, ORDER.index(entry.phase)], least=0.0)
        if over_steps is not None:
            half = over_steps.high - over_steps.value
            low = max(entry.seconds - half, 0.0)
            found[entry.phase] = Estimate(value=entry.seconds, low=low, high=entry.seconds + half, n=over_steps.n)
    return found


def _short(values: NDArray[np.float64]) -> Any:
    """As lists, with as many figures as can be seen."""
    if values.ndim == 2:
        return [_short(row) for row in values]
    return [_shortened(value) for value in values.tolist()]


def _shortened(value: float) -> float:
    return float(f"{value:.5g}")
