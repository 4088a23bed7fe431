"""Stretches that the program has named itself: their own time, by phase, and in workers and other threads."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.iterations import BETWEEN, EVAL, Iterations
from floorit.analyse.ledger import Ledger
from floorit.events import Process, Rows
from floorit.record import wire

TRAINING, WORKERS, THREADS = "training thread", "loader workers", "other threads"
_EVAL = wire.PHASES.index("eval")
_NANO = 1e-9


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """One name: its seconds a step, without those of names inside of it."""

    name: str
    by: str  # who spent them
    phase: str | None  # that they are part of; None in workers and threads, whose time is beside the step's
    seconds: float
    share: float | None  # of the mean step; None beside it
    calls: float  # a step
    file: str | None
    line: int | None


def find(process: Process, workers: Process | None, iterations: Iterations, ledger: Ledger) -> list[Named]:
    """All names, those of the training thread first, the largest first among each."""
    begin = float(process.starts()[np.flatnonzero(iterations.of_row >= iterations.warmup)[0]])
    steps = max(len(iterations.after_warmup), 1)
    found = _in_step(process, iterations, ledger.mean, steps)
    for source, by in ((workers, WORKERS), (process, THREADS)):
        notes = [note for note in source.named_elsewhere if note["at"] >= begin] if source is not None else []
        found += _beside(notes, by, steps, {named.name: named for named in found})
    return found


def _in_step(process: Process, iterations: Iterations, mean: float, steps: int) -> list[Named]:
    """By phase, of the rows that the ledger counts."""
    table, rows = process.named, process.rows
    table = table[table["row"] < len(rows)]
    work = np.flatnonzero((iterations.of_row >= iterations.warmup) & (iterations.kind != BETWEEN))
    if not len(table) or not len(work):
        return []
    at = table["row"].astype(np.int64)
    table = table[(at >= work[0]) & (at <= work[-1]) & ~iterations.windowed[at]]
    found = []
    for number in np.unique(table["name"]).tolist():
        own = table[table["name"] == number]
        facts = process.names.get(number, {})
        for phase, (calls, seconds) in _by_phase(own, rows, iterations).items():
            found.append(
                Named(
                    name=str(facts.get("name", "(too many names)")),
                    by=TRAINING,
                    phase=wire.PHASES[phase],
                    seconds=seconds / steps,
                    share=seconds / steps / mean if mean else 0.0,
                    calls=calls / steps,
                    file=facts.get("file"),
                    line=facts.get("line"),
                )
            )
    return sorted(found, key=lambda named: -named.seconds)


def _by_phase(own: Rows, rows: Rows, iterations: Iterations) -> dict[int, tuple[float, float]]:
    """Calls and seconds of one name by phase.

    In a nap phases are not told apart: there it is divided as in the steps that were looked at closely.
    """
    at = own["row"].astype(np.int64)
    phases = np.where(iterations.kind[at] == EVAL, _EVAL, own["phase"])
    napped = (rows["flags"][at] & replay.NAP > 0) & (phases == wire.OTHER)
    spent: dict[int, list[float]] = {}
    for phase in np.unique(phases[~napped]).tolist():
        of_phase = ~napped & (phases == phase)
        spent[phase] = [float(own["calls"][of_phase].sum()), float(own["seconds"][of_phase].sum())]
    seen = sum(seconds for _, seconds in spent.values())
    calls, seconds = float(own["calls"][napped].sum()), float(own["seconds"][napped].sum())
    if not seen:
        spent[wire.OTHER] = [calls, seconds]
    else:
        for part in spent.values():
            share = part[1] / seen
            part[0] += calls * share
            part[1] += seconds * share
    return {phase: (calls, seconds) for phase, (calls, seconds) in spent.items()}


def _beside(notes: list[dict[str, Any]], by: str, steps: int, known: dict[str, Named]) -> list[Named]:
    spent: dict[str, list[int]] = {}
    for note in notes:
        for name, (calls, nanoseconds) in note["spent"].items():
            total = spent.setdefault(name, [0, 0])
            total[0] += calls
            total[1] += nanoseconds
    found = [
        Named(
            name=name,
            by=by,
            phase=None,
            seconds=nanoseconds * _NANO / steps,
            share=None,
            calls=calls / steps,
            file=known[name].file if name in known else None,
            line=known[name].line if name in known else None,
        )
        for name, (calls, nanoseconds) in spent.items()
    ]
    return sorted(found, key=lambda named: -named.seconds)
