"""Operations on images as a person reads them: what a sample's time goes into, and which other ways are faster."""

from __future__ import annotations

from floorit.analyse.input import Workers
from floorit.analyse.operations import Alternative, Operation, Reading
from floorit.report.words import several
from floorit.stats import seconds

MOST = 4  # operations that are named, and of them those whose other ways are shown
MOST_WAYS = 3
SMALL = 0.03  # shares of a sample under it are not named
FASTER = 0.95  # of the present way: what costs more than that is not called faster
_RISKS = {"exact": "same results", "rounding": "other rounding", "training": "changes training"}


def lines(workers: Workers) -> list[str]:
    """A line of operations, one of reading, and one for each operation that was measured."""
    named = [operation for operation in workers.operations if operation.share >= SMALL][:MOST]
    if not named or workers.watched_sample_seconds is None:
        return []
    told = [f"of making a sample, by {workers.watched_batches} watched batches: {', '.join(map(_share, named))}"]
    told += [_reading(workers.reading)] if workers.reading is not None and workers.reading.file_warm else []
    return told + [_ways(operation) for operation in named if operation.alternatives]


def _name(operation: Operation) -> str:
    """Library, function and setting."""
    library, *_, function = operation.name.split(".")
    return f"{library}.{function} {operation.setting or ''}".rstrip()


def _share(operation: Operation) -> str:
    sizes = [" x ".join(map(str, shape)) for shape in (operation.shape, operation.result) if shape]
    return f"{_name(operation)} {operation.share:.0%} {' -> '.join(sizes)}".rstrip()


def _reading(reading: Reading) -> str:
    assert reading.file_warm is not None
    cold = f", {seconds(reading.file_cold.value)} from storage" if reading.file_cold is not None else ""
    kilo = f"{(reading.file_bytes or 0) / 1024:,.0f} KiB"
    return f"reading a file of {kilo}: {seconds(reading.file_warm.value)} from memory{cold}"


def _ways(operation: Operation) -> str:
    assert operation.measured is not None
    faster = sorted((way for way in operation.alternatives if way.ratio < FASTER), key=lambda way: way.ratio)
    said = "; ".join(map(_way, faster[:MOST_WAYS]))
    none = f"none of {several(len(operation.alternatives), 'other way')} is faster"
    return f"{_name(operation)} takes {seconds(operation.measured.value)} by itself: {said or none}"


def _way(way: Alternative) -> str:
    step = f", a step {way.speedup.value:.2f}x as fast" if way.speedup is not None else ""
    return f"{way.what} {seconds(way.seconds.value)}{step} ({_RISKS[way.risk]})"
