"""The tables that a record is read into: one line a row of the training thread, a mark, a name, a batch made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from floorit.record import wire
from floorit.replay import Look, Named, Row, Stretch

_P = len(wire.PHASES)
ROW = np.dtype(
    [
        ("end", "<f8"),
        ("iterator", "<u4"),
        ("samples", "<u4"),
        ("optimizers", "<u4"),
        ("backwards", "<u2"),
        ("opened", "u1"),
        ("flags", "u1"),
        ("ready", "<u2"),
        ("steps", "<u2"),
        ("seconds", "<f4", (_P,)),
    ]
)
# A stretch that the program has named: in which row and phase, calls that began there, its own seconds.
NAMED_ROW = np.dtype([("row", "<u4"), ("name", "<u2"), ("phase", "u1"), ("calls", "<u4"), ("seconds", "<f8")])
DEVICE_ROW = np.dtype([("row", "<u4"), ("seconds", "<f4", (_P,))])
FETCH = np.dtype(
    [
        ("end", "<f8"),
        ("pid", "<u4"),
        ("samples", "<u4"),
        ("worker", "<u2"),
        ("fetch", "<f4"),
        ("collate", "<f4"),
        ("send", "<f4"),
    ]
)
# Time of the program's own code since a known line: when it ended and how long it was (nanoseconds), where, which pass.
STRETCH = np.dtype([("time", "<i8"), ("nanoseconds", "<i8"), ("place", "<u4"), ("iterator", "<u4")])
# A look at the stack: when (nanoseconds), number of the stack and of the innermost line, in which phase and pass.
LOOK = np.dtype([("time", "<i8"), ("stack", "<u4"), ("leaf", "<u4"), ("iterator", "<u4"), ("phase", "u1")])
NANO = 1e-9
MOST, MOST_SAMPLES = 0xFFFF, 0xFFFFFFFF

Rows = NDArray[Any]


def of_rows(rows: list[Row]) -> Rows:
    """What lies between borders, played back."""
    return np.array([_columns(row) for row in rows], ROW)


def of_named(named: list[Named]) -> Rows:
    """Stretches that the program has named."""
    return np.array([(n.row, n.name, n.phase, n.calls, n.nanoseconds * NANO) for n in named], NAMED_ROW)


def of_looks(looks: list[Look]) -> Rows:
    """Looks at the stack that have a phase."""
    return np.array([(k.time, k.stack, k.leaf, k.iterator, k.phase) for k in looks], LOOK)


def of_stretches(stretches: list[Stretch]) -> Rows:
    """Those of the program's own code."""
    own = [(s.time, s.nanoseconds, s.place, s.iterator) for s in stretches if s.phase == wire.OTHER]
    return np.array(own, STRETCH)


def _columns(row: Row) -> tuple[Any, ...]:
    """A row as it stands in the table."""
    return (
        row.end * NANO,
        row.iterator,
        min(row.samples, MOST_SAMPLES),
        row.optimizers,
        min(row.backwards, MOST),
        row.opened,
        row.flags,
        min(row.ready, MOST),
        min(row.steps, MOST),
        [nanoseconds * NANO for nanoseconds in row.spent],
    )
