"""What a run did lately: the last minute of its record, for one who looks on."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.iterations import EVAL, TRAIN, Iterations
from floorit.events import Process, Rows
from floorit.record import wire
from floorit.stats import Floats

SPAN = 60.0  # seconds
ENDLESS = 30 * 86400.0  # seconds: an epoch that would take longer is a sampler's way to say that there is no end


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """The last rows of a process that trains. None: it is not known."""

    steps: int
    seconds: float  # of all these rows
    phases: dict[str, float]  # seconds of them
    step_seconds: Floats  # of each step, evaluation and gaps left out
    samples_per_second: float | None
    workers: int | None  # of the loader that trains; None: there is no loader of torch's
    workers_busy: float | None  # share of their time in which they made batches
    queue_empty: float | None  # of the times when a batch was wanted
    epoch: int | None  # number of the pass over the training data, from 1
    batch: int | None  # of it that trains now, from 1
    batches: int | None  # in it, by the loader's length

    @property
    def mean(self) -> float | None:
        """Seconds a step, with all that lies between."""
        return self.seconds / self.steps if self.steps else None


def look(process: Process, iterations: Iterations, shared: Process | None) -> Recent:
    """The rows that ended within SPAN of the last; start-up is none of them, nor what the windows slowed down."""
    rows, kind = process.rows, iterations.kind
    latest = float(rows["end"][-1])
    lately = np.flatnonzero((rows["end"] > latest - SPAN) & (iterations.of_row >= 0) & ~iterations.windowed)
    seconds = rows["seconds"][lately].astype(np.float64)
    evaluates = kind[lately] == EVAL
    spent = seconds[~evaluates].sum(axis=0)
    spent[wire.EVAL] += seconds[evaluates].sum()
    numbers = np.unique(iterations.of_row[lately[kind[lately] == TRAIN]])
    total, samples = float(spent.sum()), float(iterations.samples[numbers].sum())
    loader = next(iter(process.loaders_of(reversed(process.trained_iterators()))), None)
    return Recent(
        steps=len(numbers),
        seconds=total,
        phases={phase: float(s) for phase, s in zip(wire.PHASES, spent.tolist(), strict=True) if s > 0},
        step_seconds=iterations.seconds[numbers],
        samples_per_second=samples / total if samples and total else None,
        workers=loader["workers"] if loader is not None else None,
        workers_busy=_busy(process, shared, loader, rows[lately]),
        queue_empty=_empty(rows[lately]),
        **_epoch(process, loader),
    )


def _busy(process: Process, shared: Process | None, loader: dict[str, Any] | None, rows: Rows) -> float | None:
    """Of the time of the workers that these rows' training passes had; each pass may have had its own."""
    if shared is None or loader is None or not loader["workers"] or not len(rows):
        return None
    passes = set(process.trained_iterators()) & set(np.unique(rows["iterator"]).tolist())
    pids = [pid for number in passes for pid in process.iterators.get(number, {}).get("pids", [])]
    begin, end = float(rows["end"][0]) - float(rows["seconds"][0].sum()), float(rows["end"][-1])
    fetches = shared.fetches
    made = fetches[np.isin(fetches["pid"], pids) & (fetches["end"] > begin) & (fetches["end"] <= end)]
    worked = sum(float(made[part].sum()) for part in ("fetch", "collate", "send"))
    return min(worked / (float(loader["workers"]) * (end - begin)), 1.0)


def _empty(rows: Rows) -> float | None:
    asked = rows["ready"][(rows["opened"] == replay.BATCH) & (rows["ready"] != replay.NO_QUEUE)]
    return float((asked == 0).mean()) if len(asked) else None


def _epoch(process: Process, loader: dict[str, Any] | None) -> dict[str, int | None]:
    passes = process.trained_iterators()
    if not passes:
        return {"epoch": None, "batch": None, "batches": None}
    rows = process.rows
    done = int(((rows["iterator"] == passes[-1]) & (rows["opened"] == replay.BATCH)).sum())
    length = loader.get("length") if loader is not None else None
    return {"epoch": len(passes), "batch": done, "batches": length if length and done <= length else None}
