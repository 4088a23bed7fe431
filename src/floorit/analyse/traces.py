"""Stack traces that autograd's anomaly detection has formatted, one for each operation."""

from __future__ import annotations

import numpy as np

from floorit.analyse.iterations import Iterations
from floorit.events import Process


def share(process: Process, iterations: Iterations) -> float | None:
    """Of the time after warm-up; None where none were timed, or too shortly to say.

    Each note has what came since the note before it; the last is written when the program ends, soon after it trained.
    """
    after = np.flatnonzero(iterations.of_row >= iterations.warmup)
    if not len(after):
        return None
    begin, end = float(process.starts()[after[0]]), float(process.rows["end"][-1])
    notes = [note for note in process.traces if note["at"] >= begin]
    until = next((i for i, note in enumerate(notes) if note["at"] >= end), len(notes)) + 1
    notes = notes[:until]
    if len(notes) < 2:
        return None
    return float(sum(note["seconds"] for note in notes[1:]) / (min(notes[-1]["at"], end) - notes[0]["at"]))
