"""Ranks that train together: who is late, with what, and who waits for it.

Ranks that reduce gradients are in step: all leave backward (or the collective that the program calls) when the last has
got there. So what a rank does outside of these is its own, and a step takes as long as the slowest rank's own time and
what they all do in them. A rank waits for as long as its own time is less than the slowest one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Ledger, Line
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Estimate, Floats, mean

IN_STEP = 0.1  # of the mean step: ranks whose means differ by more do not wait for each other
LATE = 0.05  # of the step that the others lose by it: less is not told
MOSTLY = 0.5  # of the steps in which the same rank is the slowest: in fewer they take turns
ENOUGH = 10  # steps
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


def compare(trained: Sequence[Trained]) -> Together | None:
    """Lay the steps of all ranks side by side; None where they are not in step, or too few."""
    first = max(one.iterations.warmup for one in trained)
    last = min(one.iterations.count for one in trained)
    means = np.array([one.ledger.mean for one in trained])
    if len(trained) < 2 or last - first < ENOUGH or np.ptp(means) > IN_STEP * means.mean():
        return None
    if not all(_reduces(one) for one in trained):
        return None
    counted = ~np.any([one.iterations.slowed[first:last] for one in trained], axis=0)
    own = np.stack([_own(one.process, one.iterations)[first:last][counted] for one in trained])
    waited = np.stack([_spent(one.process, one.iterations, _DATA)[first:last][counted] for one in trained])
    if own.shape[1] < ENOUGH:
        return None
    slowest = own.argmax(axis=0)
    late = _late(trained, own, slowest)
    return Together(
        waits=[_wait(own, rank, late, trained) for rank in range(len(trained))],
        late=late,
        data_seconds=float((own.max(axis=0) - (own - waited).max(axis=0)).mean()),
    )


def _reduces(one: Trained) -> bool:
    """Whether it was seen to meet the others: by DDP, or by collectives that it calls."""
    return one.process.ddp is not None or one.ledger.seconds("grad_sync") > 0


def _own(process: Process, iterations: Iterations) -> Floats:
    """Seconds of each iteration that are the rank's own, evaluation and gaps that follow it included."""
    return _spent(process, iterations, [phase for phase in range(len(wire.PHASES)) if phase not in _TOGETHER])


def _spent(process: Process, iterations: Iterations, phases: Sequence[int]) -> Floats:
    """Seconds of each iteration in these phases."""
    spent = process.rows["seconds"][:, list(phases)].sum(axis=1, dtype=np.float64)
    inside = iterations.of_row >= 0
    each = np.bincount(iterations.of_row[inside], weights=spent[inside], minlength=iterations.count)
    return each.astype(np.float64)


def _late(trained: Sequence[Trained], own: Floats, slowest: np.ndarray) -> LateRank | None:
    """The rank by which the others lose most, if that is much and mostly the same one."""
    behind = own - np.stack([np.median(np.delete(own, rank, axis=0), axis=0) for rank in range(len(own))])
    lost = np.where(slowest == np.arange(len(own))[:, None], behind, 0.0).mean(axis=1)
    rank = int(lost.argmax())
    later, share = mean(behind[rank]), float((slowest == rank).mean())
    step = trained[rank].ledger.mean
    if later is None or later.low <= 0 or lost[rank] < LATE * step or share < MOSTLY:
        return None
    phase, own_seconds, others = _excess(trained, rank)
    is_cause = phase is not None and own_seconds - others > later.value / 2
    return LateRank(
        rank=trained[rank].process.rank,
        seconds=later,
        share=later.value / step,
        slowest_share=share,
        phase=phase if is_cause else None,
        phase_seconds=own_seconds if is_cause else None,
        others_seconds=others if is_cause else None,
        where=trained[rank].ledger.where(phase) if is_cause and phase is not None else [],
    )


def _excess(trained: Sequence[Trained], rank: int) -> tuple[str | None, float, float]:
    """The phase that a rank spends most more on than the others in the middle; its seconds and theirs."""
    spent = [{entry.phase: entry.seconds for entry in one.ledger.entries} for one in trained]
    together = {wire.PHASES[phase] for phase in _TOGETHER}
    found: tuple[str | None, float, float] = (None, 0.0, 0.0)
    for phase, own in spent[rank].items():
        others = float(np.median([other.get(phase, 0.0) for at, other in enumerate(spent) if at != rank]))
        if phase not in together and own - others > found[1] - found[2]:
            found = (phase, own, others)
    return found


def _wait(own: Floats, rank: int, late: LateRank | None, trained: Sequence[Trained]) -> Wait:
    waited = mean(own.max(axis=0) - own[rank])
    assert waited is not None
    for_whom = late.rank if late is not None and late.rank != trained[rank].process.rank else None
    return Wait(rank=for_whom, seconds=waited)
