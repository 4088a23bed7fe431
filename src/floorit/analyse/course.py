"""One step as it went: what the host did and, where kernels were watched, what the GPU did, moment by moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.gpu import gaps_of, inside_of, of_main_device, on_gpu, pieces_of
from floorit.analyse.host import timeline
from floorit.analyse.iterations import TRAIN, Iterations
from floorit.analyse.kernels import kind_of
from floorit.analyse.trace import Trace
from floorit.analyse.watched import Clocks, Stretch, whole_steps
from floorit.events import Place, Process, Span
from floorit.record import wire

MOST_BARS = 3000  # in a lane; where there are more, short ones are drawn with their neighbour
_NANO = 1e-9


class Bar(msgspec.Struct, frozen=True):
    """A stretch of time in one lane. Seconds since the step began."""

    begin: float
    end: float
    what: str  # the host's phase, a kind of kernels, or a cause of idle time
    place: Place | None = None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """One step. Lanes that were not seen are empty."""

    step: int  # its number
    seconds: float  # that it took the host
    end: float  # of what is shown: the GPU may be done with it later
    is_watched: bool  # in the kernel window, and slower for it
    host: list[Bar]
    gpu: list[Bar] = []
    idle: list[Bar] = []


def usual(process: Process, iterations: Iterations, spans_between: Callable[[int, int], list[Span]]) -> Course | str:
    """The host's part of a step as long as most, or why there is none; the log of that time is read again."""
    chosen = _of_usual_length(process, iterations)
    if chosen is None:
        return "no step after warm-up was looked into"
    rows = np.flatnonzero((iterations.of_row == chosen) & (iterations.kind == TRAIN))
    begin = round(float(process.starts()[rows[0]]) / _NANO)
    end = round(float(process.rows["end"][rows[-1]]) / _NANO)
    host = _bars(spans_between(begin, end), begin, end)
    length = (end - begin) * _NANO
    return Course(step=chosen, seconds=length, end=length, is_watched=False, host=host) if host else "its log is torn"


def watched(process: Process, iterations: Iterations, window: dict[str, Any], trace: Trace) -> Course | str:
    """The step of median length in the kernel window, or why it cannot be told."""
    steps = whole_steps(process, iterations, *window["measured"])
    work = of_main_device(trace.work)
    if not steps or not len(work) or not len(trace.calls):
        return "no whole step lies inside the kernel window"
    step = sorted(steps, key=lambda step: step[-1][1] - step[0][0])[len(steps) // 2]
    clock = Clocks(window["clocks"])
    began, ended = clock(step[0][0]), clock(step[-1][1])
    [(_, done)] = on_gpu([(began, ended)], work, trace.calls)
    shown: Stretch = (began, max(done, ended))
    spans = clock.spans(process.spans)
    idle = pieces_of(list(gaps_of(work, [shown])), work, trace.calls, timeline(spans, trace.calls, work))
    inside = inside_of(work, [shown])
    return Course(
        step=_number(process, iterations, step[0][0]),
        seconds=(ended - began) * _NANO,
        end=(shown[1] - began) * _NANO,
        is_watched=True,
        host=_bars(spans, *shown),
        gpu=_fewer(
            [
                _bar(max(begin, began), min(end, shown[1]), began, kind_of(inside.names[name]))
                for begin, end, name in zip(
                    inside.begin.tolist(), inside.end.tolist(), inside.name.tolist(), strict=True
                )
            ]
        ),
        idle=_fewer([_bar(p.begin, p.end, began, p.cause, p.at.place if p.at else None) for p in idle]),
    )


def _of_usual_length(process: Process, iterations: Iterations) -> int | None:
    """The number of the step nearest to the median of those that were looked into, and of which there is a log."""
    closely = np.ones(iterations.count, bool)
    unseen = process.rows["flags"] & replay.NAP > 0
    if process.packed is not None:
        unseen |= (process.rows["end"] > process.packed.since) & (process.starts() < process.packed.until)
    closely[iterations.of_row[unseen & (iterations.of_row >= 0)]] = False
    closely[: iterations.warmup] = False
    closely[iterations.slowed] = False
    chosen = np.flatnonzero(closely)
    if not len(chosen):
        return None
    seconds = iterations.seconds[chosen]
    return int(chosen[np.abs(seconds - np.median(seconds)).argmin()])


def _number(process: Process, iterations: Iterations, begin: int) -> int:
    row = int(np.abs(process.starts() - begin * _NANO).argmin())
    return int(iterations.of_row[row])


def _bars(spans: list[Span], begin: int, end: int) -> list[Bar]:
    """What of the spans lies between two moments."""
    inside = sorted((s for s in spans if s.end > begin and s.begin < end), key=lambda span: span.begin)
    bars = [_bar(max(s.begin, begin), min(s.end, end), begin, wire.PHASES[s.phase], s.place) for s in inside]
    return _fewer(bars)


def _bar(begin: int, end: int, since: int, what: str, place: Place | None = None) -> Bar:
    return Bar((begin - since) * _NANO, (end - since) * _NANO, what, place)


def _fewer(bars: list[Bar]) -> list[Bar]:
    """At most MOST_BARS: the shorter ones join the bar before them that they touch."""
    short = (bars[-1].end - bars[0].begin) / (8 * MOST_BARS) if bars else 0.0
    while len(bars) > MOST_BARS:
        joined = bars[:1]
        for bar in bars[1:]:
            last = joined[-1]
            if bar.end - bar.begin < short and bar.begin - last.end < short:
                joined[-1] = msgspec.structs.replace(last, end=max(last.end, bar.end))
            else:
                joined.append(bar)
        bars, short = joined, 2 * short
    return bars
