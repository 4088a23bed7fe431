"""What the GPU did in the kernel window: busy and idle time, why it was idle, and which kernels it ran."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.host import COMM, DATA_WAIT, H2D, LAUNCH, OTHER, SYNC, Segment, timeline
from floorit.analyse.iterations import TRAIN, Iterations
from floorit.analyse.kernels import kind_of, uses_tensor_cores
from floorit.analyse.ledger import Line, lines
from floorit.analyse.trace import Events, Ints, Trace
from floorit.events import Process, Sample, Span

CAUSES = (DATA_WAIT, LAUNCH, SYNC, H2D, COMM, OTHER)
MOST_KERNELS = 10  # named in the report
_NANO = 1e-9
_EXACT = 1e-7  # seconds by which times of one border may differ after rounding

Stretch = tuple[int, int]  # begin and end


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Time in which nothing ran on the GPU, by what held it up."""

    cause: str
    share: float  # of a step
    seconds: float  # a step
    host: str  # the phase that the host was in for most of it; `gpu`: all was launched, the GPU itself waited
    where: list[Line]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels and copies of one kind."""

    kind: str
    seconds: float  # a step
    share: float  # of the time of all kernels and copies, added up
    count: float  # a step


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one kernel."""

    name: str
    kind: str
    seconds: float
    share: float
    count: float


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU in the steps of the kernel window; busy and idle shares add up to 1."""

    steps: int = 0  # that were watched
    step_seconds: float | None = None  # how long each took, being watched
    busy_share: float | None = None
    idle: list[Idle] = []
    copies_alone_share: float | None = None  # of a step: copies ran and no kernel; part of busy
    comm_alone_share: float | None = None  # of a step: communication ran and nothing else; part of busy
    tensor_share: float | None = None  # of the time of all kernels and copies: on tensor cores, by their names
    kinds: list[Kind] = []
    kernels: list[Kernel] = []
    kernels_per_step: float | None = None
    launches_per_step: float | None = None
    memory_peak: int | None = None  # bytes that tensors had at most
    power_watts: float | None = None
    power_limit_watts: float | None = None


def examine(process: Process, iterations: Iterations, window: dict[str, Any], trace: Trace) -> Gpu | str:
    """The GPU's time in the whole steps of a window, or why it cannot be told."""
    count, stretches = _steps(process, iterations, *window["measured"])
    if not count:
        return "no whole step lies inside the kernel window"
    to_trace = _Clocks(window["clocks"])
    stretches = [(to_trace(begin), to_trace(end)) for begin, end in stretches]
    work = _of_main_device(trace.work)
    if not len(_inside(work, stretches)):
        return "no kernel was seen in the kernel window"
    if not len(trace.calls) or trace.calls.begin[-1] < stretches[-1][1]:
        return "the trace of the kernel window ends too early"
    spans = [msgspec.structs.replace(s, begin=to_trace(s.begin), end=to_trace(s.end)) for s in process.spans]
    return _measure(count, stretches, work, trace.calls, spans)


def _measure(count: int, stretches: list[Stretch], work: Events, calls: Events, spans: list[Span]) -> Gpu:
    total = sum(end - begin for begin, end in stretches)
    gaps = list(_gaps(work, stretches))
    idle = sum(end - begin for begin, end, _ in gaps)
    held_up = _held_up(gaps, work, calls, timeline(spans, calls, work))
    kinds = np.array([kind_of(name) for name in work.names])[work.name]
    inside = _inside(work, stretches)
    per_step = _NANO / count
    added = sum(_lengths(inside, stretches).tolist())
    return Gpu(
        steps=count,
        step_seconds=total * per_step,
        busy_share=1 - idle / total,
        idle=[_idle(cause, held_up[cause], total, per_step) for cause in CAUSES if cause in held_up],
        copies_alone_share=_alone(work, kinds == "copies", stretches, idle) / total,
        comm_alone_share=_alone(work, kinds == "communication", stretches, idle) / total,
        tensor_share=_tensor(inside, stretches) / added,
        kinds=_kinds(inside, stretches, per_step, count),
        kernels=_kernels(inside, stretches, per_step, count),
        kernels_per_step=sum(kind_of(inside.names[n]) != "copies" for n in inside.name.tolist()) / count,
        launches_per_step=_launches(inside, calls, stretches) / count,
    )


# -- which stretch of the trace ------------------------------------------------------------------------------------


class _Clocks:
    """From the log's clock to the trace's, by moments at which both were read."""

    def __init__(self, pairs: list[list[int]]) -> None:
        self._moments = [log for log, _ in pairs]
        self._ahead = [trace - log for log, trace in pairs]

    def __call__(self, moment: int) -> int:
        first = self._ahead[0]  # the rest is small enough for a float
        ahead = np.interp(moment - self._moments[0], [m - self._moments[0] for m in self._moments],
                          [a - first for a in self._ahead])  # fmt: skip
        return moment + first + round(float(ahead))


def _steps(process: Process, iterations: Iterations, first: int, last: int) -> tuple[int, list[Stretch]]:
    """How many whole steps lie between two moments, and the stretches of time that they make up."""
    begins, ends = process.starts(), process.rows["end"]
    trains = iterations.kind == TRAIN
    inside = trains & (begins >= first * _NANO - _EXACT) & (ends <= last * _NANO + _EXACT)
    torn = np.unique(iterations.of_row[trains & ~inside])
    whole = inside & ~np.isin(iterations.of_row, torn)
    stretches: list[Stretch] = []
    for row in np.flatnonzero(whole).tolist():
        begin, end = round(float(begins[row]) / _NANO), round(float(ends[row]) / _NANO)
        if stretches and begin - stretches[-1][1] <= _EXACT / _NANO:
            begin = stretches.pop()[0]
        stretches.append((begin, end))
    return len(np.unique(iterations.of_row[whole])), stretches


def _of_main_device(work: Events) -> Events:
    """Only what ran on the GPU that worked most."""
    if not len(work):
        return work
    devices, which = np.unique(work.device, return_inverse=True)
    busiest = devices[np.bincount(which, weights=work.end - work.begin).argmax()]
    return work.take(work.device == busiest)


def _inside(work: Events, stretches: list[Stretch]) -> Events:
    touches = np.zeros(len(work), bool)
    for begin, end in stretches:
        touches |= (work.end > begin) & (work.begin < end)
    return work.take(touches)


def _lengths(work: Events, stretches: list[Stretch]) -> Ints:
    """Nanoseconds of each that lie inside the stretches."""
    length = np.zeros(len(work), np.int64)
    for begin, end in stretches:
        length += np.maximum(np.minimum(work.end, end) - np.maximum(work.begin, begin), 0)
    return length


# -- busy and idle -------------------------------------------------------------------------------------------------


def _gaps(work: Events, stretches: Iterable[Stretch]) -> Iterator[tuple[int, int, int]]:
    """Begin and end of each stretch in which nothing ran, and the number of the work that ended it (-1: none did)."""
    for begin, end in stretches:
        touching = np.flatnonzero((work.end > begin) & (work.begin < end))
        begins = np.maximum(work.begin[touching], begin)
        reached = np.maximum.accumulate(np.append(begin, np.minimum(work.end[touching], end)))
        for i in np.flatnonzero(begins > reached[:-1]).tolist():
            yield int(reached[i]), int(begins[i]), int(touching[i])
        if reached[-1] < end:
            following = int(np.searchsorted(work.begin, end))
            yield int(reached[-1]), end, following if following < len(work) else -1


def _alone(work: Events, chosen: NDArray[np.bool_], stretches: list[Stretch], idle: int) -> int:
    """Nanoseconds in which only the chosen ran."""
    return sum(end - begin for begin, end, _ in _gaps(work.take(~chosen), stretches)) - idle


class _Held(msgspec.Struct):
    """Idle time of one cause, in pieces: nanoseconds, phase of the host, its line."""

    nanoseconds: int = 0
    pieces: list[tuple[int, str, Segment | None]] = []


def _held_up(
    gaps: list[tuple[int, int, int]], work: Events, calls: Events, host: list[Segment]
) -> dict[str, _Held]:
    """Every gap booked to what the host was doing until it had launched the work that ended the gap."""
    held: dict[str, _Held] = {}

    def book(cause: str, nanoseconds: int, phase: str, at: Segment | None = None) -> None:
        if nanoseconds > 0:
            entry = held.setdefault(cause, _Held(0, []))
            entry.nanoseconds += nanoseconds
            entry.pieces.append((nanoseconds, phase, at))

    launched = _launch_ends(work, calls)
    begins = [segment.begin for segment in host]
    is_comm = [kind_of(name) == "communication" for name in work.names]
    for begin, end, ender in gaps:
        issued = int(launched[ender]) if ender >= 0 and launched[ender] >= 0 else end
        if issued <= begin:  # it was waiting on the GPU's side
            book(COMM if is_comm[work.name[ender]] else OTHER, end - begin, "gpu")
            continue
        at = max(bisect_right(begins, begin) - 1, 0)
        blocked = host[at] if host and host[at].begin <= begin < host[at].end and host[at].cause == SYNC else None
        now, until = begin, min(issued, end)
        last: Segment | None = None
        while now < until and at < len(host):
            segment = host[at]
            at += 1
            if segment.end <= now:
                continue
            book(OTHER, min(segment.begin, until) - now, "unknown")
            now = max(now, segment.begin)
            upto = min(segment.end, until)
            last = segment
            if segment.cause == LAUNCH and blocked is not None:  # the host had to fill the queue again
                book(SYNC, upto - now, segment.phase, blocked)
            else:
                book(segment.cause, upto - now, segment.phase, segment)
            now = max(now, upto)
        book(OTHER, until - now, "unknown")
        if end > until:  # launched, not begun yet
            book(SYNC if blocked is not None else LAUNCH, end - until, last.phase if last else "unknown", blocked or last)
    return held


def _launch_ends(work: Events, calls: Events) -> Ints:
    """When the call that launched each piece of work returned; -1 where it was not seen."""
    order = np.argsort(calls.correlation, kind="stable")
    known = calls.correlation[order]
    at = np.searchsorted(known, work.correlation)
    at = np.minimum(at, max(len(known) - 1, 0))
    if not len(known):
        return np.full(len(work), -1, np.int64)
    found = (known[at] == work.correlation) & (work.correlation >= 0)
    return np.where(found, calls.end[order][at], -1)


def _idle(cause: str, held: _Held, total: int, per_step: float) -> Idle:
    phases: dict[str, int] = {}
    for nanoseconds, phase, _ in held.pieces:
        phases[phase] = phases.get(phase, 0) + nanoseconds
    places = [
        Sample(0.0, 0, 0, at.place, at.place, nanoseconds)
        for nanoseconds, _, at in held.pieces
        if at is not None and at.place is not None
    ]
    return Idle(
        cause=cause,
        share=held.nanoseconds / total,
        seconds=held.nanoseconds * per_step,
        host=max(phases, key=lambda phase: phases[phase]),
        where=lines(places),
    )


# -- kernels -------------------------------------------------------------------------------------------------------


def _tensor(work: Events, stretches: list[Stretch]) -> int:
    uses = np.array([uses_tensor_cores(name) for name in work.names], bool)
    return int(_lengths(work, stretches)[uses[work.name]].sum())


def _by_name(work: Events, stretches: list[Stretch]) -> list[tuple[str, int, int]]:
    """Name, nanoseconds and how many, the longest first."""
    size = len(work.names)
    seconds = np.bincount(work.name, weights=_lengths(work, stretches), minlength=size)
    counts = np.bincount(work.name, minlength=size)
    found = zip(work.names, seconds.astype(np.int64).tolist(), counts.tolist(), strict=True)
    return sorted((row for row in found if row[2]), key=lambda row: -row[1])


def _kernels(work: Events, stretches: list[Stretch], per_step: float, steps: int) -> list[Kernel]:
    found = _by_name(work, stretches)
    added = sum(ns for _, ns, _ in found)
    return [
        Kernel(name=name, kind=kind_of(name), seconds=ns * per_step, share=ns / added, count=count / steps)
        for name, ns, count in found[:MOST_KERNELS]
    ]


def _kinds(work: Events, stretches: list[Stretch], per_step: float, steps: int) -> list[Kind]:
    totals: dict[str, list[int]] = {}
    for name, ns, count in _by_name(work, stretches):
        entry = totals.setdefault(kind_of(name), [0, 0])
        entry[0] += ns
        entry[1] += count
    added = sum(ns for ns, _ in totals.values())
    return [
        Kind(kind=kind, seconds=ns * per_step, share=ns / added, count=count / steps)
        for kind, (ns, count) in sorted(totals.items(), key=lambda item: -item[1][0])
    ]


def _launches(work: Events, calls: Events, stretches: list[Stretch]) -> int:
    """Calls that launched something."""
    inside = _inside(calls, stretches)
    return int(np.isin(inside.correlation, work.correlation[work.correlation >= 0]).sum())
