"""What each part of the model costs: its forward and backward work, by the steps of a window in which it was marked."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.gpu import launches, of_main_device
from floorit.analyse.iterations import Iterations
from floorit.analyse.kernels import kind_of
from floorit.analyse.ledger import Ledger
from floorit.analyse.precision import TypeShare, shares
from floorit.analyse.trace import Ints, Operator, Trace
from floorit.analyse.watched import Clocks, Stretch, whole_steps
from floorit.events import Process, Span
from floorit.record import wire

PHASES = (wire.FORWARD, wire.BACKWARD, wire.RECOMPUTE)
FORWARD = 0  # of these
Call = tuple[int, int, int]  # number of the part, begin and end by the log's clock
REST = "rest"
_NOBODY = -1
_NANO = 1e-9
Floats = NDArray[np.float64]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the model, or what is left of the passes beside the parts. Seconds and bytes of a step."""

    name: str
    class_name: str | None = msgspec.field(name="class", default=None)  # None: this is the rest
    count: int = 1  # modules in it: those of a list that are not told apart
    parameters: int | None = None
    forward_seconds: float | None  # None: no call of it was seen
    backward_seconds: float | None
    recompute_seconds: float | None
    share: float | None  # of the mean step
    activation_bytes: int | None = None  # that its forward pass leaves allocated
    flops: float | None = None  # a step, with what is computed again; counted in a floor run

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(s or 0.0 for s in (self.forward_seconds, self.backward_seconds, self.recompute_seconds))


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that add up, with the rest, to the passes of a step."""

    parts: list[Part]  # in the model's order; the last is the rest
    steps: int  # that were watched
    on_gpu: bool  # whether seconds are those of kernels, else of the host
    left_out: int = 0  # parts that are in the rest because there are too many
    dtypes: list[TypeShare] = []  # of the kernels in the same trace


def with_flops(parts: list[Part], by_module: dict[str, float]) -> list[Part]:
    """The parts with what their modules compute: {path below its class: number of operations}."""
    own: dict[str, float] = {}
    for path, count in by_module.items():
        own[_below_class(path)] = own.get(_below_class(path), 0.0) + count
    known = [_with_flops(part, own) for part in parts[:-1]]
    left = sum(own.values()) - sum(part.flops or 0.0 for part in known)
    return [*known, *(msgspec.structs.replace(rest, flops=left) for rest in parts[-1:])]


def _with_flops(part: Part, own: dict[str, float]) -> Part:
    return msgspec.structs.replace(
        part, flops=sum(count for path, count in own.items() if path == part.name or path.startswith(part.name + "."))
    )


def _below_class(path: str) -> str:
    """As parts are named: without the class of the outermost module, and without a wrapper's `module`."""
    return path.partition(".")[2].removeprefix("module.")


def examine(
    process: Process,
    iterations: Iterations,
    window: dict[str, Any],
    trace: Trace,
    usual: Ledger,
    calls: list[Call] | None = None,
) -> Parts | str:
    """The parts' seconds in the whole steps of a window, or why they cannot be told.

    `calls` are those of the forward pass where the host is timed: in steps of their own, without operators.
    """
    steps = whole_steps(process, iterations, *window["measured"])
    owners = Owners(trace.operators, trace.lanes)
    reason = _unknown(steps, owners, trace, window["on_gpu"])
    if reason is not None:
        return reason
    to_trace, count = Clocks(window["clocks"]), len(window["parts"])
    phases = _Phases(to_trace.spans(process.spans))
    times = [[(to_trace(begin), to_trace(end)) for begin, end in step] for step in steps]
    if window["on_gpu"]:
        spent, kept = (
            _each(_on_gpu(owners, trace), phases, times, count).mean(axis=0),
            _kept(window["kept"], steps, count),
        )
    else:
        spent, kept = _typical(_each(_on_host(owners, phases, times), phases, times, count)), None
        timed = whole_steps(process, iterations, *process.calls["measured"]) if process.calls and calls else []
        if calls and timed:
            spent[:, FORWARD] = _forward(calls, _Phases(process.spans), timed, count)
        spent = _scaled(spent, usual)
    return Parts(
        parts=_parts(window["parts"], spent, owners.called, kept, usual.mean),
        steps=len(steps),
        on_gpu=window["on_gpu"],
        left_out=window["left_out"],
        dtypes=shares(trace),
    )


def _unknown(steps: list[list[Stretch]], owners: Owners, trace: Trace, on_gpu: bool) -> str | None:
    if not steps:
        return "no whole step lies inside the window"
    if on_gpu and not (len(trace.work) and len(trace.calls)):
        return "no kernel was seen in the watched steps"
    if not owners.called:
        return "no part of the model was called in the watched steps"
    if not owners.has_backward:
        return "no operation of the backward pass could be told to belong to a part"
    return None


def _forward(calls: list[Call], phases: _Phases, steps: list[list[Stretch]], count: int) -> Floats:
    """Seconds of each part's calls in the forward pass of a step, and of the rest of it."""
    number, begin, end = np.array(sorted(calls, key=lambda call: call[1]), np.int64).T
    edges = [edge for step in steps for stretch in step for edge in stretch]
    borders = np.unique(np.concatenate([phases.begin, begin, end, np.array(edges, np.int64)]))
    moment = borders[:-1]
    index = np.maximum(np.searchsorted(begin, moment, side="right") - 1, 0)
    inside = (begin[index] <= moment) & (moment < end[index])
    pieces = _Pieces(moment, np.diff(borders), np.where(inside, number[index], _NOBODY))
    return _typical(_each(pieces, phases, steps, count))[:, FORWARD]


def _typical(each: Floats) -> Floats:
    """Of each part and phase the median step, as a host is interrupted now and then; the mean where some have none."""
    return np.where(np.all(each > 0, axis=0), np.median(each, axis=0), each.mean(axis=0))


def _scaled(spent: Floats, usual: Ledger) -> Floats:
    """To be told of each operator slows the host down: the parts share what a usual step takes."""
    wanted = np.array([usual.seconds(wire.PHASES[phase]) for phase in PHASES])
    seen = spent.sum(axis=0)
    scaled: Floats = spent * np.divide(wanted, seen, out=np.zeros(len(PHASES)), where=seen > 0)
    scaled[_NOBODY] += np.where(seen > 0, 0.0, wanted)  # of a pass that was not among the watched steps
    return scaled


def _parts(facts: list[dict[str, Any]], spent: Floats, called: set[int], kept: Ints | None, step: float) -> list[Part]:
    parts = []
    for number, fact in enumerate(facts):
        is_called = number in called
        forward, backward, recompute = spent[number].tolist() if is_called else [None] * len(PHASES)
        parts.append(
            Part(
                name=fact["name"],
                class_name=fact["class"],
                count=fact["count"],
                parameters=fact["parameters"],
                forward_seconds=forward,
                backward_seconds=backward,
                recompute_seconds=recompute,
                share=float(spent[number].sum()) / step if is_called and step else None,
                activation_bytes=int(kept[number]) if kept is not None and is_called else None,
            )
        )
    forward, backward, recompute = spent[_NOBODY].tolist()
    share = float(spent[_NOBODY].sum()) / step if step else None
    rest = Part(name=REST, forward_seconds=forward, backward_seconds=backward, recompute_seconds=recompute, share=share)
    return [*parts, rest]


def _kept(calls: list[tuple[int, int, int]], steps: list[list[Stretch]], parts: int) -> Ints:
    """Bytes a step that each part's calls left allocated."""
    total = np.zeros(parts, np.int64)
    for time, number, size in calls:
        if any(begin <= time <= end for step in steps for begin, end in step):
            total[number] += size
    return total // len(steps)


# -- whose work it is ----------------------------------------------------------------------------------------------


class Owners:
    """Which part each moment of each of the host's threads belongs to.

    A call of a part is marked in the trace. An operation of the backward pass has the number of the operator that made
    it, and belongs to what that one belonged to; one that adds up a gradient has none, and follows the one before it.
    What is marked inside of the backward pass is computed again.
    """

    def __init__(self, operators: list[Operator], lanes: dict[int, int]) -> None:
        self.called: set[int] = set()
        self.has_backward = False
        self._lanes = lanes
        self._open: dict[int, list[tuple[int, int]]] = {}  # lane -> (end, owner) of what has begun and not ended
        self._borders: dict[int, list[tuple[int, int]]] = {}  # lane -> (time, owner from then on)
        self._numbers: dict[int, list[int]] = {}  # lane -> numbers of its operators, which only grow
        self._made_by: dict[int, list[int]] = {}  # lane -> owners of these
        self._before: dict[int, int] = {}  # lane -> owner of its last node
        marks = Counter[int]()
        for operator in operators:
            self._close(operator.lane, operator.begin)
            self._take(operator)
            marks[operator.lane] += operator.part >= 0
        for lane in self._open:
            self._close(lane, None)
        self.training_lane = max(marks, key=lambda lane: marks[lane], default=0)

    def at(self, lane: int, moments: Ints) -> Ints:
        """The number of the part at each moment; -1: it is nobody's."""
        borders = self._borders.get(lane)
        if not borders:
            return np.full(len(moments), _NOBODY)
        index = np.searchsorted(np.array([time for time, _ in borders]), moments, side="right")
        return np.array([_NOBODY, *(owner for _, owner in borders)])[index]

    def borders(self, lane: int) -> list[int]:
        """When the owner changes."""
        return [time for time, _ in self._borders.get(lane, [])]

    def _take(self, operator: Operator) -> None:
        lane = operator.lane
        if operator.part >= 0:
            self.called.add(operator.part)
            self._enter(operator, operator.part)
        elif operator.is_node:
            owner = self._before[lane] = self._owner_of_node(operator)
            self.has_backward |= owner != _NOBODY
            self._enter(operator, owner)
        elif not operator.thread:
            stack = self._open.get(lane)
            self._numbers.setdefault(lane, []).append(operator.sequence)
            self._made_by.setdefault(lane, []).append(stack[-1][1] if stack else _NOBODY)

    def _owner_of_node(self, node: Operator) -> int:
        """Of the last operator up to its number: that one has made it. An operator may make several."""
        if node.sequence < 0:
            return self._before.get(node.lane, _NOBODY)
        lane = self._lanes.get(node.thread, node.lane)
        at = bisect_right(self._numbers.get(lane, []), node.sequence) - 1
        return self._made_by[lane][at] if at >= 0 else _NOBODY

    def _enter(self, operator: Operator, owner: int) -> None:
        self._open.setdefault(operator.lane, []).append((operator.end, owner))
        self._borders.setdefault(operator.lane, []).append((operator.begin, owner))

    def _close(self, lane: int, now: int | None) -> None:
        """What has ended by now gives way to what is around it."""
        stack = self._open.get(lane, [])
        while stack and (now is None or stack[-1][0] <= now):
            end, _ = stack.pop()
            borders = self._borders[lane]
            borders.append((max(end, borders[-1][0]), stack[-1][1] if stack else _NOBODY))


class _Phases:
    """The phase of the training thread at any moment."""

    def __init__(self, spans: list[Span]) -> None:
        spans = sorted(spans, key=lambda span: span.begin)
        self.begin = np.array([span.begin for span in spans], np.int64)
        self._end = np.array([span.end for span in spans], np.int64)
        columns = {phase: column for column, phase in enumerate(PHASES)}
        self._column = np.array([columns.get(span.phase, -1) for span in spans], np.int64)

    def at(self, moments: Ints) -> Ints:
        """Its number in PHASES; -1: none of these."""
        if not len(self.begin):
            return np.full(len(moments), -1)
        index = np.maximum(np.searchsorted(self.begin, moments, side="right") - 1, 0)
        inside = (self.begin[index] <= moments) & (moments < self._end[index])
        return np.where(inside, self._column[index], -1)


# -- how long it took ----------------------------------------------------------------------------------------------


class _Pieces(msgspec.Struct, frozen=True):
    """Work that took some time: when the host was at it, for how many nanoseconds, and whose it is."""

    moment: Ints
    length: Ints
    owner: Ints


def _on_gpu(owners: Owners, trace: Trace) -> _Pieces:
    """Kernels, by the operator that asked for them; those that communicate are nobody's.

    CUDA's own clock may differ a little from torch's, so the time of a launch counts only where no operator is known.
    """
    work = of_main_device(trace.work)
    launched = launches(work, trace.calls)
    calls = zip(launched.lane.tolist(), launched.begin.tolist(), strict=True)
    asked = [trace.began.get(number, call) for number, call in zip(work.operator.tolist(), calls, strict=True)]
    lanes, moments = np.array([lane for lane, _ in asked]), np.array([moment for _, moment in asked])
    owner = np.full(len(work), _NOBODY)
    for lane in np.unique(lanes).tolist():
        owner[lanes == lane] = owners.at(lane, moments[lanes == lane])
    is_communication = np.array([kind_of(name) == "communication" for name in work.names], bool)
    owner[is_communication[work.name]] = _NOBODY
    return _Pieces(moments, work.end - work.begin, owner)


def _on_host(owners: Owners, phases: _Phases, steps: list[list[Stretch]]) -> _Pieces:
    """The training thread's time, cut wherever the owner, the phase or the step changes."""
    lane = owners.training_lane
    edges = [edge for step in steps for stretch in step for edge in stretch]
    borders = np.unique(np.concatenate([phases.begin, np.array([*owners.borders(lane), *edges], np.int64)]))
    return _Pieces(borders[:-1], np.diff(borders), owners.at(lane, borders[:-1]))


def _each(pieces: _Pieces, phases: _Phases, steps: list[list[Stretch]], parts: int) -> Floats:
    """Seconds by step, part and phase."""
    return np.array([_tally(pieces, phases, step, parts) for step in steps]) * _NANO


def _tally(pieces: _Pieces, phases: _Phases, step: list[Stretch], parts: int) -> Floats:
    """Nanoseconds of one step by part and phase; the last row is nobody's."""
    counts = np.zeros(len(pieces.moment), bool)
    for begin, end in step:
        counts |= (pieces.moment >= begin) & (pieces.moment < end)
    phase = phases.at(pieces.moment)
    counts &= phase >= 0
    spent = np.zeros((parts + 1, len(PHASES)))
    np.add.at(spent, (pieces.owner[counts], phase[counts]), pieces.length[counts])
    return spent
