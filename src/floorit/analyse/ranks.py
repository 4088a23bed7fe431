"""Ranks that train together: who is late, with what, and who waits for it.

Ranks that reduce gradients are in step: all leave backward (or the collective that the program calls) when the last has
got there. So what a rank does outside of these is its own, and a step takes as long as the slowest rank's own time and
what they all do in them. A rank waits for as long as its own time is less than the slowest one's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.iterations import Bools, Iterations
from floorit.analyse.ledger import Ledger, Line
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Estimate, Floats, mean

IN_STEP = 0.1  # of the step: ranks whose paces differ by more do not wait for each other
USUAL = 0.95  # of the steps, by which a rank's pace is told: where warm-up ends, one may have a long one more
LATE = 0.05  # of the step that the others lose by it: less is not told
MOSTLY = 0.5  # of the steps in which the same rank is the slowest: in fewer they take turns
ENOUGH = 10  # steps
AT_ONCE = 256  # steps of all ranks that are laid side by side at a time
_TOGETHER = (wire.BACKWARD, wire.GRAD_SYNC)
_DATA = (wire.DATA_WAIT, wire.EPOCH_GAP)
_NANO = 1e-9


class Trained(Protocol):
    """A process that trained, and what is known of it."""

    @property
    def process(self) -> Process: ...
    @property
    def iterations(self) -> Iterations: ...
    @property
    def ledger(self) -> Ledger: ...


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A rank as it is laid beside the others."""

    rank: int
    warmup: int
    slowed: Bools  # of each iteration
    own: Floats  # seconds of it that are the rank's own, evaluation and gaps that follow included
    waited: Floats  # seconds of it in which it waited for data
    pace: float  # seconds of a usual step
    reduces: bool  # whether it was seen to meet the others: by DDP, or by collectives that it calls
    ledger: Ledger

    @property
    def count(self) -> int:
        return len(self.own)


class LateRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that the others wait for."""

    rank: int
    seconds: Estimate  # a step that its own time is longer than that of the others in the middle
    share: float  # of the step
    slowest_share: float  # of the steps in which it was the slowest
    phase: str | None  # in which most of that is; None: in no one of them
    phase_seconds: float | None  # a step, of this rank
    others_seconds: float | None  # the same of the others in the middle
    where: list[Line]


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """How long a rank waits for the slowest of each step, and which that mostly is."""

    rank: int | None  # None: it waits for none, or they take turns
    seconds: Estimate


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks, in their order."""

    waits: list[Wait]
    late: LateRank | None
    data_seconds: float  # a step that is shorter by so much if no rank waited for data


def waits(process: Process, iterations: Iterations) -> float | None:
    """Seconds a step that backward communicates and computes nothing; None where DDP has not timed it.

    DDP reduces gradients once for each optimizer step, where it is told not to in between.
    """
    told = [times for reading in process.readings if (times := reading.get("ddp"))]
    if not told:
        return None
    alone = float(max(told[-1]["comm"] - told[-1]["beside"], 0)) * _NANO
    return alone / max(iterations.accumulation, 1.0)


def member(one: Trained) -> Member:
    """What the others need to know of a rank."""
    process, iterations = one.process, one.iterations
    alone = [phase for phase in range(len(wire.PHASES)) if phase not in _TOGETHER]
    return Member(
        rank=process.rank,
        warmup=iterations.warmup,
        slowed=iterations.slowed,
        own=_spent(process, iterations, alone),
        waited=_spent(process, iterations, _DATA),
        pace=_pace(iterations.after_warmup),
        reduces=process.ddp is not None or one.ledger.seconds("grad_sync") > 0,
        ledger=msgspec.structs.replace(one.ledger, looks={}),
    )


def _pace(seconds: Floats) -> float:
    """The mean of all but the longest."""
    usual = np.sort(seconds)[: max(round(USUAL * len(seconds)), 1)]
    return float(usual.mean()) if len(usual) else 0.0


def compare(members: Sequence[Member]) -> Together | None:
    """Lay the steps of all ranks side by side; None where they are not in step, or too few."""
    first = max(one.warmup for one in members)
    last = min(one.count for one in members)
    paces = np.array([one.pace for one in members])
    if len(members) < 2 or last - first < ENOUGH or np.ptp(paces) > IN_STEP * paces.mean():
        return None
    if not all(one.reduces for one in members):
        return None
    slowed = np.zeros(last - first, bool)
    for one in members:
        slowed |= one.slowed[first:last]
    steps = first + np.flatnonzero(~slowed)
    if len(steps) < ENOUGH:
        return None
    side = _side_by_side(members, steps)
    late = _late(members, steps, side)
    return Together(
        waits=[_wait(one, steps, side, late) for one in members],
        late=late,
        data_seconds=float((side.longest - side.without_data).mean()),
    )


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known of each step over all ranks: of their own seconds."""

    slowest: NDArray[np.int64]  # which rank
    longest: Floats
    without_data: Floats  # the longest if none waited for data
    middle: Floats  # those in the middle by size, three of them

    def others(self, own: Floats, ranks: int) -> Floats:
        """The median of all ranks but one, whose own seconds these are."""
        low, high, above = self.middle
        left: Floats = np.where(own > low, low, high)
        right: Floats = np.where(own > high, high, above)
        return left if ranks % 2 == 0 else (left + right) / 2


def _side_by_side(members: Sequence[Member], steps: NDArray[np.int64]) -> _Side:
    """All ranks in a few steps at a time: a table of all of them would be large."""
    at = (len(members) - 2) // 2
    middle = [at, at + 1, min(at + 2, len(members) - 1)]
    parts = []
    for some in np.array_split(steps, math.ceil(len(steps) / AT_ONCE)):
        own = np.stack([one.own[some] for one in members], axis=1)
        waited = np.stack([one.waited[some] for one in members], axis=1)
        parts.append(
            (
                own.argmax(axis=1),
                own.max(axis=1),
                (own - waited).max(axis=1),
                np.partition(own, middle, axis=1)[:, middle].T,
            )
        )
    slowest, longest, without_data, between = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return _Side(slowest=slowest, longest=longest, without_data=without_data, middle=between)


def _spent(process: Process, iterations: Iterations, phases: Sequence[int]) -> Floats:
    """Seconds of each iteration in these phases."""
    spent = process.rows["seconds"][:, list(phases)].sum(axis=1, dtype=np.float64)
    inside = iterations.of_row >= 0
    each = np.bincount(iterations.of_row[inside], weights=spent[inside], minlength=iterations.count)
    return each.astype(np.float64)


def _late(members: Sequence[Member], steps: NDArray[np.int64], side: _Side) -> LateRank | None:
    """The rank by which the others lose most, if that is much and mostly the same one."""

    def behind(one: Member) -> Floats:
        return one.own[steps] - side.others(one.own[steps], len(members))

    lost = [float(np.where(side.slowest == at, behind(one), 0.0).mean()) for at, one in enumerate(members)]
    at = int(np.argmax(lost))
    one, later, share = members[at], mean(behind(members[at])), float((side.slowest == at).mean())
    step = one.ledger.mean
    if later is None or lost[at] < LATE * step or share < MOSTLY:
        return None
    if later.low <= 0 and np.median(behind(one)) < LATE * one.pace:  # a few long steps, as any rank may have them
        return None
    phase, own_seconds, others = _excess(members, at)
    is_cause = phase is not None and own_seconds - others > later.value / 2
    return LateRank(
        rank=one.rank,
        seconds=later,
        share=later.value / step,
        slowest_share=share,
        phase=phase if is_cause else None,
        phase_seconds=own_seconds if is_cause else None,
        others_seconds=others if is_cause else None,
        where=one.ledger.where(phase) if is_cause and phase is not None else [],
    )


def _excess(members: Sequence[Member], rank: int) -> tuple[str | None, float, float]:
    """The phase that a rank spends most more on than the others in the middle; its seconds and theirs."""
    spent = [{entry.phase: entry.seconds for entry in one.ledger.entries} for one in members]
    together = {wire.PHASES[phase] for phase in _TOGETHER}
    found: tuple[str | None, float, float] = (None, 0.0, 0.0)
    for phase, own in spent[rank].items():
        others = float(np.median([other.get(phase, 0.0) for at, other in enumerate(spent) if at != rank]))
        if phase not in together and own - others > found[1] - found[2]:
            found = (phase, own, others)
    return found


def _wait(one: Member, steps: NDArray[np.int64], side: _Side, late: LateRank | None) -> Wait:
    waited = mean(side.longest - one.own[steps])
    assert waited is not None
    return Wait(rank=late.rank if late is not None and late.rank != one.rank else None, seconds=waited)
