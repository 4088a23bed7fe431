"""The steps that a window has watched: which of them are whole, and when they were by the trace's clock."""

from __future__ import annotations

import msgspec
import numpy as np

from floorit.analyse.iterations import TRAIN, Iterations
from floorit.events import Process, Span

_NANO = 1e-9
_EXACT = 1e-7  # seconds by which times of one border may differ after rounding

Stretch = tuple[int, int]  # begin and end, in nanoseconds


class Clocks:
    """From the log's clock to the trace's, by moments at which both were read."""

    def __init__(self, pairs: list[list[int]]) -> None:
        self._moments = [log for log, _ in pairs]
        self._ahead = [trace - log for log, trace in pairs]

    def __call__(self, moment: int) -> int:
        first = self._ahead[0]  # the rest is small enough for a float
        moments = [m - self._moments[0] for m in self._moments]
        ahead = np.interp(moment - self._moments[0], moments, [a - first for a in self._ahead])
        return moment + first + round(float(ahead))

    def spans(self, spans: list[Span]) -> list[Span]:
        """The same spans by the trace's clock."""
        return [msgspec.structs.replace(s, begin=self(s.begin), end=self(s.end)) for s in spans]


def whole_steps(process: Process, iterations: Iterations, first: int, last: int) -> list[list[Stretch]]:
    """The whole steps between two moments, each as the stretches of time that it is made up of."""
    begins, ends = process.starts(), process.rows["end"]
    steps: dict[int, list[Stretch]] = {}
    for row in _rows(process, iterations, first, last):
        stretch = round(float(begins[row]) / _NANO), round(float(ends[row]) / _NANO)
        steps.setdefault(int(iterations.of_row[row]), []).append(stretch)
    return list(steps.values())


def host_seconds(process: Process, iterations: Iterations, phase: int, first: int, last: int) -> float:
    """What the host spent in a phase in one of those steps, on average."""
    rows = _rows(process, iterations, first, last)
    steps = len(set(iterations.of_row[rows].tolist()))
    return float(process.rows["seconds"][rows, phase].sum()) / steps if steps else 0.0


def _rows(process: Process, iterations: Iterations, first: int, last: int) -> list[int]:
    """Of the steps that lie between two moments as a whole."""
    begins, ends = process.starts(), process.rows["end"]
    trains = iterations.kind == TRAIN
    inside = trains & (begins >= first * _NANO - _EXACT) & (ends <= last * _NANO + _EXACT)
    torn = np.unique(iterations.of_row[trains & ~inside])
    return [int(row) for row in np.flatnonzero(inside & ~np.isin(iterations.of_row, torn))]


def joined(steps: list[list[Stretch]]) -> list[Stretch]:
    """All stretches in order, those that touch made one."""
    stretches: list[Stretch] = []
    for begin, end in sorted(stretch for step in steps for stretch in step):
        if stretches and begin - stretches[-1][1] <= _EXACT / _NANO:
            begin = stretches.pop()[0]
        stretches.append((begin, end))
    return stretches


def lies_in(stretch: Stretch, stretches: list[Stretch]) -> bool:
    """Whether all of it is part of one of them."""
    slack = _EXACT / _NANO
    return any(begin - slack <= stretch[0] and stretch[1] <= end + slack for begin, end in stretches)
