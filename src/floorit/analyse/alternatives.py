"""What other ways to do an operation on images cost, as it was measured after the run, and what they would gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from floorit.analyse.input import Workers
from floorit.analyse.needs import Needs, Range
from floorit.analyse.operations import Alternative, Operation, Reading, Risk, Watched
from floorit.analyse.stepmodel import Change, gain
from floorit.stats import Estimate

# Which operations are worth the seconds: of the time to make a batch, and so many at most.
WORTH, MOST = 0.03, 6
_HALF = 2  # times a picture is made smaller by the next operation, from which on it need not be decoded whole
_REDUCTIONS = (8, 4, 2)
_READS_BYTES = ("numpy.fromfile", "torchvision.io.read_file")
NOT_ASKED = "`floorit run --floor` measures it"
_LITTLE = f"it takes under {WORTH:.0%} of the time to make a batch"


class MeasuredWay(msgspec.Struct, frozen=True, kw_only=True):
    """One other way."""

    what: str
    risk: Risk
    seconds: Estimate  # a call: median and quartiles
    against: Estimate  # the present way by the same clock


class MeasuredOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation by itself, and its other ways; or why it was not measured."""

    name: str = ""
    flag: int | str | list[int] | None = None
    present: Estimate | None = None
    on: str | None = None
    alternatives: list[MeasuredWay] = []
    missing: str | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured after the run, or why nothing was."""

    operations: list[MeasuredOperation] = []
    file_bytes: float | None = None
    file_warm: Estimate | None = None
    file_cold: Estimate | None = None
    file_missing: str | None = None
    reason: str | None = None


def asked(watched: Watched) -> list[dict[str, Any]]:
    """The operations that are to be measured, as the script that does it wants them."""
    wanted = [operation for operation in watched.operations if operation.share >= WORTH][:MOST]
    return [
        {
            "name": operation.name,
            "flag": operation.flag,
            "setting": operation.setting,
            "shape": operation.shape,
            "dtype": operation.dtype,
            "result": operation.result,
            "matrix": operation.matrix,
            "threads": operation.threads,
            "files": watched.files[operation.name] or _contents(operation, watched),
            "reduce": _reduction(operation, watched.operations),
        }
        for operation in wanted
    ]


def _contents(decoded: Operation, watched: Watched) -> list[str]:
    """Where a buffer is decoded: the files that were read into one."""
    if decoded.kind != "decoding":
        return []
    return [path for name in _READS_BYTES for path in watched.files.get(name, ())]


def _reduction(decoded: Operation, operations: Sequence[Operation]) -> int | None:
    """By how much a picture could be decoded smaller, where what is decoded is then made smaller by at least half."""
    if decoded.kind != "decoding" or not decoded.result:
        return None
    tall, wide = decoded.result[:2]
    for operation in operations:
        if operation.kind == "resizing" and operation.result and (operation.shape or [])[:2] == [tall, wide]:
            times = min(tall / operation.result[0], wide / operation.result[1])
            return next((by for by in _REDUCTIONS if by <= times), None) if times >= _HALF else None
    return None


def with_measured(workers: Workers, measured: Measured | None, needs: Needs) -> Workers:
    """The loader's operations with their other ways, and what each would gain."""
    found = [_with_ways(operation, workers, measured, needs) for operation in workers.operations]
    return msgspec.structs.replace(workers, operations=found, reading=_with_files(workers.reading, measured))


def _with_files(reading: Reading | None, measured: Measured | None) -> Reading | None:
    if reading is None:
        return None
    if measured is None or measured.reason is not None:
        return msgspec.structs.replace(reading, missing=NOT_ASKED if measured is None else measured.reason)
    return msgspec.structs.replace(
        reading,
        file_bytes=measured.file_bytes,
        file_warm=measured.file_warm,
        file_cold=measured.file_cold,
        missing=measured.file_missing,
    )


def _with_ways(operation: Operation, workers: Workers, measured: Measured | None, needs: Needs) -> Operation:
    if measured is None:
        return msgspec.structs.replace(operation, missing=NOT_ASKED)
    if measured.reason is not None:
        return msgspec.structs.replace(operation, missing=measured.reason)
    key = (operation.name, operation.flag)
    own = next((m for m in measured.operations if (m.name, m.flag) == key), None)
    if own is None or own.present is None:
        return msgspec.structs.replace(operation, missing=own.missing if own is not None else _LITTLE)
    ways = [_weighed(way, operation, workers, needs) for way in own.alternatives]
    return msgspec.structs.replace(operation, measured=own.present, measured_on=own.on, alternatives=ways)


def _weighed(way: MeasuredWay, operation: Operation, workers: Workers, needs: Needs) -> Alternative:
    ratio = way.seconds.value / way.against.value
    made = Alternative(what=way.what, seconds=way.seconds, ratio=ratio, risk=way.risk)
    if way.risk == "exact" or workers.watched_sample_seconds is None:
        return made  # other threads: measured alone, and workers share the cores
    share = operation.share
    sample = workers.watched_sample_seconds * (1 - share * (1 - ratio))
    speedup = _speedup(way.seconds, way.against, share * _of_loader(workers), needs) if needs.starved else None
    return msgspec.structs.replace(made, sample_seconds=sample, speedup=speedup)


def _speedup(other: Estimate, present: Estimate, share: float, needs: Needs) -> Estimate:
    """What the step gains: from quartile against quartile, whichever way round is worse and better."""
    ratios = (other.low / present.high, other.value / present.value, other.high / present.low)
    found = gain(needs, Change(loader=Range(*(1 - share * (1 - ratio) for ratio in ratios))))
    # A way that is slower makes a loss of what is sure, which is then no less than what is likely.
    return msgspec.structs.replace(found, low=min(found.low, found.value), high=max(found.high, found.value))


def _of_loader(workers: Workers) -> float:
    """Of a worker's time for a batch, what is not sending it."""
    made = (workers.fetch_seconds or 0.0) + (workers.collate_seconds.value if workers.collate_seconds else 0.0)
    return made / (made + (workers.send_seconds or 0.0)) if made else 1.0
