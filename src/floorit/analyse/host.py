"""What the host was doing at any moment of the kernel window, and which cause of an idle GPU that is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from floorit.analyse.kernels import HOST_TO_DEVICE, PAGEABLE
from floorit.analyse.trace import Events
from floorit.events import Place, Span
from floorit.record import wire

DATA_WAIT, LAUNCH, SYNC, H2D, COMM, OTHER = "data_wait", "launch", "sync", "h2d", "comm", "other"
_CAUSES = {
    wire.DATA_WAIT: DATA_WAIT,
    wire.EPOCH_GAP: DATA_WAIT,
    wire.H2D: H2D,
    wire.SYNC: SYNC,
    wire.GRAD_SYNC: COMM,
    wire.FORWARD: LAUNCH,
    wire.LOSS: LAUNCH,
    wire.BACKWARD: LAUNCH,
    wire.RECOMPUTE: LAUNCH,
    wire.OPTIMIZER: LAUNCH,
}
_BACKWARD = (wire.BACKWARD, wire.RECOMPUTE)
_ISSUING = (wire.FORWARD, wire.LOSS, *_BACKWARD, wire.OPTIMIZER, wire.OTHER)
# Calls of CUDA that return when the GPU is done, as the runtime and the driver name them.
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize",
          "cuCtxSynchronize", "cuEventSynchronize")  # fmt: skip
_BLOCKING_COPIES = ("cudaMemcpy", "cudaMemcpy2D", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2")


class Segment(msgspec.Struct, frozen=True):
    """A stretch of the host's time, on the trace's clock."""

    begin: int
    end: int
    cause: str
    phase: str
    place: Place | None


class _Call(msgspec.Struct, frozen=True):
    begin: int
    end: int
    cause: str
    thread: int
    name: str


def timeline(spans: list[Span], calls: Events, work: Events) -> list[Segment]:
    """The host's phases in order, with the calls in them in which it was blocked, or launched work."""
    blocked, launching = _told_apart(calls, work)
    either = sorted(blocked + launching, key=lambda call: call.begin)
    segments: list[Segment] = []
    for span in sorted(spans, key=lambda span: span.begin):
        cause = _CAUSES.get(span.phase, OTHER)
        calls_in_it = {LAUNCH: blocked, OTHER: either}.get(cause, [])
        segments += _overlaid(span, cause, calls_in_it)
    return segments


class Wait(msgspec.Struct, frozen=True):
    """A call of CUDA's in which the host was blocked until the GPU was done."""

    begin: int
    end: int
    phase: str
    call: str

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.begin) * 1e-9


def waits(spans: list[Span], calls: Events, work: Events) -> list[Wait]:
    """Those of training itself, in phases in which the host is there to give the GPU work.

    Threads beside it wait, too: of a phase counts the one that launches most of its work. That of the backward pass
    is autograd's own.
    """
    blocked, launching = _told_apart(calls, work)
    where = _Where(spans)
    trains = {
        is_backward: _most(call.thread for call in launching if where.is_backward(call) is is_backward)
        for is_backward in (False, True)
    }
    found = []
    for call in blocked:
        phase = where.of(call)
        if phase in _ISSUING and call.cause == SYNC and call.thread == trains[phase in _BACKWARD]:
            found.append(Wait(call.begin, call.end, wire.PHASES[phase], call.name))
    return found


class _Where:
    """In which phase the host was, by the middle of a call: the two clocks are microseconds apart."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = sorted(spans, key=lambda span: span.begin)
        self._begins = [span.begin for span in self._spans]

    def of(self, call: _Call) -> int | None:
        middle = (call.begin + call.end) // 2
        at = bisect_right(self._begins, middle) - 1
        return self._spans[at].phase if at >= 0 and middle < self._spans[at].end else None

    def is_backward(self, call: _Call) -> bool | None:
        phase = self.of(call)
        return phase in _BACKWARD if phase in _ISSUING else None


def _most(threads: Iterable[int]) -> int | None:
    counted = Counter(threads).most_common(1)
    return counted[0][0] if counted else None


def _overlaid(span: Span, cause: str, calls: list[_Call]) -> list[Segment]:
    """A span cut at the calls inside of it."""
    phase = wire.PHASES[span.phase]
    segments, now = [], span.begin
    at = max(bisect_left(calls, span.begin, key=lambda call: call.begin) - 1, 0)
    while at < len(calls) and calls[at].begin < span.end:
        call = calls[at]
        at += 1
        begin, end = max(call.begin, now), min(call.end, span.end)
        if end <= begin:
            continue
        if begin > now:
            segments.append(Segment(now, begin, cause, phase, span.place))
        segments.append(Segment(begin, end, call.cause, phase, span.place))
        now = end
    if span.end > now:
        segments.append(Segment(now, span.end, cause, phase, span.place))
    return segments


def _told_apart(calls: Events, work: Events) -> tuple[list[_Call], list[_Call]]:
    """Calls that blocked, with what they waited for, and calls that launched work."""
    launched = dict(zip(work.correlation.tolist(), work.name.tolist(), strict=True))
    launched.pop(-1, None)
    copied_last: dict[int, bool] = {}  # thread -> whether its last call copied to the GPU
    blocked, launching = [], []
    columns = (calls.name, calls.begin, calls.end, calls.lane, calls.correlation)
    for number, begin, end, thread, correlation in zip(*(np.asarray(c).tolist() for c in columns), strict=True):
        name = calls.names[number]
        what = work.names[launched[correlation]] if correlation in launched else ""
        to_gpu = HOST_TO_DEVICE.search(what) is not None
        if name.startswith(_WAITS) or name in _BLOCKING_COPIES or PAGEABLE.search(what):
            is_copy = to_gpu or (name.startswith(_WAITS) and copied_last.get(thread, False))
            blocked.append(_Call(begin, end, H2D if is_copy else SYNC, thread, name))
        elif what:
            launching.append(_Call(begin, end, LAUNCH, thread, name))
        copied_last[thread] = to_gpu
    return blocked, launching
