"""What ranks spend on each other inside of backward, where only DDP itself can tell it from computing."""

from __future__ import annotations

from floorit.analyse.iterations import Iterations
from floorit.events import Process

_NANO = 1e-9


def waits(process: Process, iterations: Iterations) -> float | None:
    """Seconds a step that backward communicates and computes nothing; None where DDP has not timed it.

    DDP reduces gradients once for each optimizer step, where it is told not to in between.
    """
    told = [times for reading in process.readings if (times := reading.get("ddp"))]
    if not told:
        return None
    alone = float(max(told[-1]["comm"] - told[-1]["beside"], 0)) * _NANO
    return alone / max(iterations.accumulation, 1.0)
