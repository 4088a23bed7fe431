"""Calls that blocked the host until the GPU was done, by source line."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from floorit.analyse.host import Wait, waits
from floorit.analyse.iterations import Iterations
from floorit.analyse.trace import Trace
from floorit.analyse.watched import Clocks, joined, lies_in, whole_steps
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
    stretches = [(to_trace(begin), to_trace(end)) for begin, end in joined(steps)]
    seen = waits(to_trace.spans(process.spans), trace.calls, trace.work)
    blocked = [wait for wait in seen if lies_in((wait.begin, wait.end), stretches)]
    first, last = (moment * _NANO for moment in window["measured"])
    meanwhile = sorted((look for look in process.samples if first <= look.at <= last), key=lambda look: look.at)
    looks = [(to_trace(round(look.at / _NANO)), look.user or look.leaf) for look in meanwhile]
    parts: dict[Place | None, list[_Part]] = defaultdict(list)
    for part in _parts(blocked, looks):
        parts[part.place].append(part)
    unknown = parts.pop(None, [])
    return Watched(
        points=longest_first(_point(place, of_it, len(steps)) for place, of_it in parts.items() if place),
        seconds={phase: sum(_seconds(w) for w in of_it) / len(steps) for phase, of_it in _by_phase(blocked).items()},
        unnamed=sum(part.calls for part in unknown) / len(steps),
        unnamed_seconds=sum(part.seconds for part in unknown) / len(steps),
    )


class _Part(msgspec.Struct, frozen=True):
    """Waits in one phase that were at one place, as far as is known."""

    place: Place | None
    phase: str
    call: str
    calls: float
    seconds: float


def _parts(blocked: list[Wait], looks: list[tuple[int, Place | None]]) -> list[_Part]:
    """Waits by where the program was when it was looked at meanwhile; None: nobody knows.

    Into waits that are shorter than the time between looks, a look falls once in so many: one that was looked at stands
    for others of its length, as many as there are in its phase at the most.
    """
    times = [time for time, _ in looks]
    between = (times[-1] - times[0]) / (len(times) - 1) * _NANO if times[1:] else 0.0
    parts = []
    for phase, of_it in _by_phase(blocked).items():
        places = [_place_in(wait, times, looks) for wait in of_it]
        seen = [(place, wait) for place, wait in zip(places, of_it, strict=True) if place]
        unseen = [wait for place, wait in zip(places, of_it, strict=True) if not place]
        others = [max(between / _seconds(wait) - 1, 0.0) for _, wait in seen]
        calls, spent = float(len(unseen)), sum(map(_seconds, unseen))
        of_calls = _at_most(calls, sum(others))
        of_seconds = _at_most(spent, sum(other * _seconds(wait) for other, (_, wait) in zip(others, seen, strict=True)))
        named = [
            _Part(place, phase, wait.call, 1 + other * of_calls, _seconds(wait) * (1 + other * of_seconds))
            for other, (place, wait) in zip(others, seen, strict=True)
        ]
        left = len(of_it) - sum(part.calls for part in named), sum(map(_seconds, of_it)) - sum(p.seconds for p in named)
        parts += [*named, *([_Part(None, phase, "", *left)] if unseen else [])]
    return parts


def _at_most(limit: float, wanted: float) -> float:
    """The part of what is wanted that there is."""
    return min(limit / wanted, 1.0) if wanted else 0.0


def _place_in(wait: Wait, times: list[int], looks: list[tuple[int, Place | None]]) -> Place | None:
    at = bisect_left(times, wait.begin)
    return looks[at][1] if at < len(looks) and times[at] < wait.end else None


def _point(place: Place, parts: list[_Part], steps: int) -> SyncPoint:
    longest = max(parts, key=lambda part: sum(p.seconds for p in parts if p.phase == part.phase))
    return SyncPoint(
        file=place.file,
        line=place.line,
        function=place.function,
        op=Counter(part.call for part in parts).most_common(1)[0][0],
        per_step=sum(part.calls for part in parts) / steps,
        seconds=sum(part.seconds for part in parts) / steps,
        phase=longest.phase,
    )


def _by_phase(blocked: list[Wait]) -> dict[str, list[Wait]]:
    found: dict[str, list[Wait]] = defaultdict(list)
    for wait in blocked:
        found[wait.phase].append(wait)
    return dict(found)


def _seconds(wait: Wait) -> float:
    return (wait.end - wait.begin) * _NANO
