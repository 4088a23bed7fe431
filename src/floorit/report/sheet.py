"""The steps as a sheet of comma-separated values: what the ledger is the mean of."""

from __future__ import annotations

import csv
import io

from floorit.analyse import series
from floorit.analyse.ledger import ORDER
from floorit.errors import RecordError
from floorit.record import wire
from floorit.report.trained import Trained

STEP, AFTER = "step", "after"
WARMUP, WATCHED = "warm-up", "watched"
# Phases as in the ledger, but for the one that needs looks at the stack: here it is part of `other`.
_PHASES = [phase for phase in ORDER if phase in wire.PHASES]
COLUMNS = ["rank", "step", "part", "left_out", "pass", "begin", "samples", "divided", "seconds", *_PHASES]


def render(trained: list[Trained]) -> str:
    """One row for each step, and one for what came between it and the next, where anything did.

    RecordError where nothing trained.
    """
    if not trained:
        raise RecordError("nothing trained in this run, so there are no steps")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in trained:
        writer.writerows(_rows(one))
    return text.getvalue()


def _rows(trained: Trained) -> list[list[object]]:
    steps = series.find(trained.process, trained.iterations)
    started = float(trained.process.starts()[0])
    order = [wire.PHASES.index(phase) for phase in _PHASES]
    seconds = steps.seconds
    return [
        [
            trained.process.rank,
            int(steps.step[i]),
            STEP if steps.is_step[i] else AFTER,
            WARMUP if steps.is_warmup[i] else WATCHED if steps.is_watched[i] else "",
            int(steps.iterator[i]) or "",
            f"{steps.begin[i] - started:.6f}",
            int(steps.samples[i]) or "",
            int(steps.is_divided[i]),
            *(f"{value:.9f}" for value in (seconds[i], *steps.phases[i, order])),
        ]
        for i in range(len(steps.step))
        if steps.is_step[i] or seconds[i] > 0
    ]
