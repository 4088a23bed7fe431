"""What a program need not do in every step: evaluation, checkpoints, logging; how long it takes, by row and by step."""

from __future__ import annotations

import numpy as np

from floorit.analyse.iterations import EVAL, Iterations
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Floats

EVALUATES, SAVES, LOGS = "eval", "checkpoint", "logging"  # phases of the ledger


def by_row(process: Process, iterations: Iterations) -> dict[str, Floats]:
    """Seconds of each row of the record. What an evaluation saves or logs is its own."""
    rows = process.rows
    seconds, evaluates = rows["seconds"].astype(np.float64), iterations.kind == EVAL
    lengths: Floats = rows["end"] - process.starts()
    return {
        EVALUATES: np.where(evaluates, lengths, seconds[:, wire.EVAL]),
        SAVES: np.where(evaluates, 0.0, seconds[:, wire.CHECKPOINT]),
        LOGS: np.where(evaluates, 0.0, seconds[:, wire.LOGGING]),
    }


def by_step(process: Process, iterations: Iterations) -> dict[str, Floats]:
    """Seconds from the border of each step to the next."""
    inside = iterations.of_row >= 0
    steps, count = iterations.of_row[inside], iterations.count
    return {
        phase: np.bincount(steps, weights=each[inside], minlength=count)[:count].astype(np.float64)
        for phase, each in by_row(process, iterations).items()
    }
