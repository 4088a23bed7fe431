"""Calls that blocked the host until the GPU was done, by source line."""

from __future__ import annotations

import msgspec

from floorit.analyse.iterations import Iterations
from floorit.events import Process
from floorit.stats import Estimate


class SyncPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One call site."""

    file: str
    line: int
    function: str
    op: str
    per_step: float
    seconds: float  # blocked, a step
    gain: Estimate | None = None  # the speed-up without this call, the others as they are; None on a CPU


def find(process: Process, iterations: Iterations) -> list[SyncPoint]:
    """Call sites over the whole run, the longest wait first."""
    totals: dict[tuple[str, int, str, str], list[float]] = {}
    for note in process.syncs:
        for file, line, function, op, calls, nanoseconds in note["sites"]:
            entry = totals.setdefault((file, line, function, op), [0, 0.0])
            entry[0] += calls
            entry[1] += nanoseconds * 1e-9
    steps = max(iterations.count, 1)
    points = [
        SyncPoint(file=file, line=line, function=function, op=op, per_step=calls / steps, seconds=seconds / steps)
        for (file, line, function, op), (calls, seconds) in totals.items()
    ]
    return sorted(points, key=lambda point: -point.seconds)
