"""Stack traces that autograd's anomaly detection has formatted, one for each operation."""

from __future__ import annotations

import numpy as np

from floorit.analyse.iterations import Iterations
from floorit.events import Process


def share(process: Process, iterations: Iterations) -> float | None:
    """Of the time after warm-up; None where none were timed, or too shortly to say.

    Each note has what came since the note before it.
    """
    after = np.flatnonzero(iterations.of_row >= iterations.warmup)
    if not len(after):
        return None
    begin, end = float(process.starts()[after[0]]), float(process.rows["end"][-1])
    notes = [note for note in process.traces if begin <= note["at"] <= end]
    if len(notes) < 2:
        return None
    return float(sum(note["seconds"] for note in notes[1:]) / (notes[-1]["at"] - notes[0]["at"]))
