"""Calls that blocked the host until the GPU was done, by source line."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from floorit.analyse.host import CAUSES, LAUNCH, OTHER, waits
from floorit.analyse.iterations import Iterations
from floorit.analyse.trace import Trace
from floorit.analyse.watched import Clocks, Stretch, joined, lies_in, whole_steps
from floorit.events import Process, Span
from floorit.record import wire
from floorit.stats import Estimate

_NANO = 1e-9


class SyncPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One call site."""

    file: str
    line: int
    function: str
    op: str
    per_step: float
    seconds: float  # blocked, a step
    gain: Estimate | None = None  # the speed-up without this call, the others as they are; None on a CPU
    phase: str = "sync"  # whose time this is part of: other calls than those of `sync` are timed in watched steps only


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Blocking in the steps of the kernel window, other than in the phase `sync`."""

    points: list[SyncPoint] = []
    seconds: dict[str, float] = {}  # blocked, a step, by the phase that it is part of
    unnamed: float = 0.0  # calls, a step, of which it is not known where they were made
    unnamed_seconds: dict[str, float] = {}  # what they block, a step, by the phase


def find(process: Process, iterations: Iterations) -> list[SyncPoint]:
    """Call sites over the whole run, the longest wait first."""
    totals: dict[tuple[str, int, str, str], list[float]] = {}
    for note in process.syncs:
        for file, line, function, op, calls, nanoseconds in note["sites"]:
            entry = totals.setdefault((file, line, function, op), [0, 0.0])
            entry[0] += calls
            entry[1] += nanoseconds * _NANO
    steps = max(iterations.count, 1)
    return longest_first(
        SyncPoint(file=file, line=line, function=function, op=op, per_step=calls / steps, seconds=seconds / steps)
        for (file, line, function, op), (calls, seconds) in totals.items()
    )


def longest_first(points: Iterable[SyncPoint]) -> list[SyncPoint]:
    """By how long they block."""
    return sorted(points, key=lambda point: -point.seconds)


def watched(process: Process, iterations: Iterations, window: dict[str, Any], trace: Trace) -> Watched:
    """What blocked in the kernel window, by its trace; and which call that was, by those timed beside it."""
    steps = whole_steps(process, iterations, *window["measured"])
    if not steps:
        return Watched()
    to_trace = Clocks(window["clocks"])
    stretches = [(to_trace(begin), to_trace(end)) for begin, end in joined(steps)]
    seen = [wait for wait in waits(trace.calls, trace.work) if lies_in(wait, stretches)]
    blocked = _with_phases(seen, to_trace.spans(process.spans))
    told = window.get("waits", {})
    calls = [_Call(to_trace(begin), to_trace(end), site) for begin, end, site in told.get("calls", [])]
    by_call = _by_call(blocked, calls)
    unknown = by_call.pop(None, [])
    per_step = 1 / len(steps)
    return Watched(
        points=_points(told.get("sites", []), by_call, per_step),
        seconds=_by_phase(blocked, per_step),
        unnamed=len(unknown) * per_step,
        unnamed_seconds=_by_phase(unknown, per_step),
    )


class _Wait(msgspec.Struct, frozen=True):
    begin: int
    end: int
    phase: str

    @property
    def middle(self) -> int:
        """A moment that is surely within the call that waited, although the two clocks are microseconds apart."""
        return (self.begin + self.end) // 2


class _Call(msgspec.Struct, frozen=True):
    begin: int
    end: int
    site: int


def _with_phases(seen: Iterable[Stretch], spans: list[Span]) -> list[_Wait]:
    """Those in phases in which the host is not known to wait."""
    spans = sorted(spans, key=lambda span: span.begin)
    begins = [span.begin for span in spans]
    found = []
    for begin, end in seen:
        at = bisect_right(begins, (begin + end) // 2) - 1
        span = spans[at] if at >= 0 else None
        if span is not None and (begin + end) // 2 < span.end and CAUSES.get(span.phase, OTHER) in (LAUNCH, OTHER):
            found.append(_Wait(begin, end, wire.PHASES[span.phase]))
    return found


def _by_call(blocked: list[_Wait], calls: list[_Call]) -> dict[_Call | None, list[_Wait]]:
    """What each call waited; None: a call that was not timed."""
    calls = sorted(calls, key=lambda call: call.begin)
    begins = [call.begin for call in calls]
    found: dict[_Call | None, list[_Wait]] = defaultdict(list)
    for wait in blocked:
        at = bisect_right(begins, wait.middle) - 1
        found[calls[at] if at >= 0 and wait.middle < calls[at].end else None].append(wait)
    return found


def _points(sites: Sequence[Any], by_call: dict[_Call | None, list[_Wait]], per_step: float) -> list[SyncPoint]:
    counts, blocked = Counter[int](), defaultdict[int, list[_Wait]](list)
    for call, found in by_call.items():
        if call is not None:
            counts[call.site] += 1
            blocked[call.site] += found
    points = []
    for site, (file, line, function, op) in enumerate(sites):
        seconds = _by_phase(blocked[site], per_step)
        if seconds:
            points.append(
                SyncPoint(
                    file=file,
                    line=line,
                    function=function,
                    op=op,
                    per_step=counts[site] * per_step,
                    seconds=sum(seconds.values()),
                    phase=max(seconds, key=lambda phase: seconds[phase]),
                )
            )
    return longest_first(points)


def _by_phase(blocked: list[_Wait], per_step: float) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for wait in blocked:
        found[wait.phase] += (wait.end - wait.begin) * _NANO * per_step
    return dict(found)
