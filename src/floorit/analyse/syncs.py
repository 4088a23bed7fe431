"""Calls that blocked the host until the GPU was done, by source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from floorit.analyse import whereabouts
from floorit.analyse.host import Wait, waits
from floorit.analyse.iterations import Iterations
from floorit.analyse.trace import Trace
from floorit.analyse.watched import Clocks, Stretch, lies_in, whole_steps
from floorit.analyse.whereabouts import Part
from floorit.events import Place, Process
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
    phase: str = "sync"  # whose time this is part of; all others are of the steps of the kernel window alone


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Blocking in the steps of the kernel window, other than in the phase `sync`."""

    points: list[SyncPoint] = []
    seconds: dict[str, float] = {}  # blocked, a step, by the phase that it is part of
    unnamed: float = 0.0  # calls, a step, of which it is not known where they were made
    unnamed_seconds: float = 0.0  # what they block, a step


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
    """What blocked in the kernel window, by its trace; and where, by the looks at the stack that fell into it.

    As when the program indexes by a mask: torch must know how many elements are chosen, and waits for the GPU.
    """
    steps = whole_steps(process, iterations, *window["measured"])
    if not steps:
        return Watched()
    to_trace = Clocks(window["clocks"])
    seen = waits(to_trace.spans(process.spans), trace.calls, trace.work)
    of_steps = [_within(seen, [(to_trace(begin), to_trace(end)) for begin, end in step]) for step in steps]
    first, last = (moment * _NANO for moment in window["measured"])
    meanwhile = sorted((look for look in process.samples if first <= look.at <= last), key=lambda look: look.at)
    looks = [(to_trace(round(look.at / _NANO)), look.user or look.leaf) for look in meanwhile]
    parts: dict[Place | None, list[Part]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    for part in whereabouts.find(of_steps, looks):
        parts[part.place].append(part)
        seconds[part.phase] += part.seconds / len(steps)
    unknown = parts.pop(None, [])
    return Watched(
        points=longest_first(_point(place, of_it, len(steps)) for place, of_it in parts.items() if place),
        seconds=dict(seconds),
        unnamed=sum(part.calls for part in unknown) / len(steps),
        unnamed_seconds=sum(part.seconds for part in unknown) / len(steps),
    )


def _within(seen: list[Wait], stretches: list[Stretch]) -> list[Wait]:
    return [wait for wait in seen if lies_in((wait.begin, wait.end), stretches)]


def _point(place: Place, parts: list[Part], steps: int) -> SyncPoint:
    spent: dict[tuple[str, str], float] = defaultdict(float)
    for part in parts:
        spent[part.phase, part.call] += part.seconds
    phase, call = max(spent, key=lambda key: spent[key])
    return SyncPoint(
        file=place.file,
        line=place.line,
        function=place.function,
        op=call,
        per_step=sum(part.calls for part in parts) / steps,
        seconds=sum(part.seconds for part in parts) / steps,
        phase=phase,
    )
