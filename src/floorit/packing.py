"""A stretch of a record, packed: what was played of its log and its other notes, in a few bytes a step.

Every row is kept. A duration is kept as a number of ticks, of which most durations of its column are some hundreds;
what rounding takes from one is given to the next. So sums over many rows, and the moments at which rows end, are off
by a few ticks however many there are, and the phases of a row still add up to it. Counts are kept as they are.
"""

from __future__ import annotations

import struct
import zlib

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.player import SavedPlayer
from floorit.tables import DEVICE_ROW, FETCH, LOOK, NAMED_ROW, NANO, ROW, STRETCH, Rows

SPAN = np.dtype([("time", "<i8"), ("nanoseconds", "<i8"), ("phase", "u1"), ("place", "<u4")])
# A look at the stack of a worker: when (nanoseconds), which one, number of the stack and of the innermost line.
SEEN = np.dtype([("time", "<i8"), ("pid", "<u4"), ("stack", "<u4"), ("leaf", "<u4")])
KINDS = {
    "rows": ROW,
    "named": NAMED_ROW,
    "device": DEVICE_ROW,
    "fetches": FETCH,
    "stretches": STRETCH,
    "looks": LOOK,
    "seen": SEEN,
    "spans": SPAN,
}
FINE = 256  # ticks in the middle one of a column's durations, at least
MOMENT = 2**14  # nanoseconds of a tick, where moments are kept by themselves
_CLOSES = 2**10  # the same of what a row lasts beyond its phases
_MOMENTS = ("end", "time")
_SECONDS = ("seconds", "fetch", "collate", "send")
_DURATIONS = (*_SECONDS, "nanoseconds")
# Where in the file it stands for, and from when to when (seconds): bytes and moments of its begin and end.
HEAD = struct.Struct("<qqdd")

Ints = NDArray[np.int64]


class Column(msgspec.Struct, frozen=True, array_like=True):
    """Numbers as differences or ticks, the lowest bytes of all of them first: the others are mostly nought."""

    data: bytes
    tick: int = 1
    first: int = 0  # what the differences begin from


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a record."""

    notes: list[bytes]
    tables: dict[str, dict[str, Column]]
    played: int | None = None  # numbers of the log up to its end
    player: SavedPlayer | None = None  # as it was there


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Which one, without unpacking it."""

    begin: int  # bytes of the file
    end: int
    since: float  # seconds
    until: float


def encode(stretch: Stretch, pack: Pack) -> bytes:
    """As it is written."""
    head = HEAD.pack(stretch.begin, stretch.end, stretch.since, stretch.until)
    return head + zlib.compress(msgspec.msgpack.encode(pack))


def stretch_of(payload: bytes) -> Stretch:
    """What a pack stands for."""
    begin, end, since, until = HEAD.unpack_from(payload)
    return Stretch(begin=begin, end=end, since=since, until=until)


def moved(payload: bytes, begin: int, end: int) -> bytes:
    """The same pack, which stands for another part of the file."""
    stretch = stretch_of(payload)
    return HEAD.pack(begin, end, stretch.since, stretch.until) + payload[HEAD.size :]


def decode(payload: bytes) -> Pack:
    """Read it back. ValueError where it is none of ours."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(payload[HEAD.size :]), type=Pack)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None


def packed(table: Rows, *, exactly: bool = False) -> dict[str, Column]:
    """A table by its columns; phases are columns of their own. `exactly` is to the nanosecond."""
    columns: dict[str, Column] = {}
    for name in table.dtype.names or ():
        values = table[name]
        if name in _DURATIONS:
            whole = values.astype(np.float64) / NANO if name in _SECONDS else values.astype(np.float64)
            for part, each in enumerate(whole.reshape(len(table), _width(table.dtype, name)).T):
                columns[f"{name}{part}"] = _ticked(each, 1 if exactly else _tick(each))
        elif name not in _MOMENTS:
            columns[name] = _counted(values.astype(np.int64))
    for name in set(table.dtype.names or ()) & set(_MOMENTS):
        columns[name] = _moments(table, name, exactly)
    return columns


def unpacked(columns: dict[str, Column], kind: np.dtype[np.void]) -> Rows:
    """The table that was packed."""
    if not columns:
        return np.zeros(0, kind)
    numbers = {name: _numbers(column) for name, column in columns.items()}
    table = np.zeros(len(next(iter(numbers.values()))), kind)
    for name in kind.names or ():
        if name in _DURATIONS:
            parts = [numbers[f"{name}{part}"] * columns[f"{name}{part}"].tick for part in range(_width(kind, name))]
            whole = np.stack(parts, axis=1).reshape(table[name].shape)
            table[name] = whole * NANO if name in _SECONDS else whole
        elif name not in _MOMENTS:
            table[name] = np.cumsum(numbers[name])
    for name in set(kind.names or ()) & set(_MOMENTS):
        column = columns[name]
        moments = column.first + np.cumsum(numbers[name] * column.tick + _lasted(columns, numbers, kind))
        table[name] = moments * NANO if name == "end" else moments
    return table


def _width(kind: np.dtype[np.void], name: str) -> int:
    return int(np.prod(kind[name].shape, dtype=int))


def _moments(table: Rows, name: str, exactly: bool) -> Column:
    """Of rows, what lies between two ends beyond the phases: nothing, unless a part of the log was lost."""
    values = np.rint(table[name] / NANO).astype(np.int64) if name == "end" else table[name].astype(np.int64)
    first = int(values[0]) if len(values) else 0
    passed = np.diff(values, prepend=first).astype(np.float64)
    if table.dtype == ROW:
        first -= round(float(table["seconds"][:1].sum(dtype=np.float64)) / NANO)
        passed = np.diff(values, prepend=first) - table["seconds"].sum(axis=1, dtype=np.float64) / NANO
    tick = 1 if exactly else _CLOSES if table.dtype == ROW else MOMENT
    return msgspec.structs.replace(_ticked(passed, tick), first=first)


def _lasted(columns: dict[str, Column], numbers: dict[str, Ints], kind: np.dtype[np.void]) -> Ints | int:
    """Nanoseconds of all phases of each row."""
    if kind != ROW:
        return 0
    return sum(numbers[f"seconds{phase}"] * columns[f"seconds{phase}"].tick for phase in range(_width(kind, "seconds")))


def _tick(nanoseconds: NDArray[np.float64]) -> int:
    """A power of two of them."""
    told = nanoseconds[nanoseconds > 0]
    middle = float(np.median(told)) if len(told) else 0.0
    return 1 << max(int(np.log2(max(middle / FINE, 1.0))), 0)


def _ticked(passed: NDArray[np.float64], tick: int) -> Column:
    until = np.rint(np.cumsum(passed) / tick).astype(np.int64)
    return Column(_planes(np.diff(until, prepend=0)), tick)


def _counted(values: Ints) -> Column:
    return Column(_planes(np.diff(values, prepend=0)))


def _planes(values: Ints) -> bytes:
    """Small numbers of either sign, as their lowest bytes, then the next ones."""
    folded = (values << 1) ^ (values >> 63)
    return zlib.compress(folded.astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes())


def _numbers(column: Column) -> Ints:
    try:
        planes = np.frombuffer(zlib.decompress(column.data), np.uint8).reshape(8, -1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    folded = np.ascontiguousarray(planes.T).view("<i8").ravel()
    numbers: Ints = (folded >> 1 & np.int64(2**63 - 1)) ^ -(folded & 1)
    return numbers
