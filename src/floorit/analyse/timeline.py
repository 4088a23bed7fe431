"""Each piece of memory that a few steps took on the GPU and gave back, what it was for, and how much there was."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.iterations import Iterations
from floorit.analyse.watched import Clocks, whole_steps
from floorit.events import Process
from floorit.record import wire

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# What a piece is for.
PARAMETERS, BUFFERS, GRADIENTS, STATE = "parameters", "buffers", "gradients", "optimizer state"
ACTIVATIONS, BATCH, LEFT_OVER, TEMPORARY = "activations", "batch", "left over", "temporary"
HALF, SINGLE = 2, 4  # bytes of a number
_FRONT, _BACK, _UPDATE, _BEFORE = range(4)
# Which stretch of a step a phase is in; one that is not here is in the one that it comes after.
_STAGES = {
    wire.FORWARD: _FRONT,
    wire.LOSS: _FRONT,
    wire.BACKWARD: _BACK,
    wire.RECOMPUTE: _BACK,
    wire.OPTIMIZER: _UPDATE,
    wire.DATA_WAIT: _BEFORE,
    wire.H2D: _BEFORE,
    wire.EVAL: _BEFORE,
    wire.EPOCH_GAP: _BEFORE,
}
_ALIKE = 8  # pieces of the same sizes in the same order: the same work
_MICRO, _NANO = 1000, 1e-9


class Actions(msgspec.Struct, frozen=True, kw_only=True):
    """The file of the window: what the allocator did, in its order, and its figures at the borders of parts."""

    times: list[int]  # microseconds since the epoch
    addresses: list[int]
    bytes: list[int]  # as they were asked for; negative where a piece was given back
    borders: list[tuple[int, int, int, int, int]]  # the log's clock; allocated, requested, reserved, in split blocks
    calls: list[tuple[int, int, int]]  # of parts: number, begin, end by the log's clock


class Piece(msgspec.Struct, frozen=True):
    """One piece of memory: the actions with which it began and ended, and what it is for."""

    begin: int
    end: int  # the number of actions where it has not ended
    bytes: int
    what: str
    part: int  # that was being called; -1: none
    step: int  # iteration in which it began
    scales: bool  # whether it grows with the batch
    is_again: bool = False  # whether it was computed again, for the work of the backward pass


class Timeline:
    """All that lived at each action. Bytes as they were asked for."""

    def __init__(self, process: Process, iterations: Iterations, window: dict[str, Any], actions: Actions) -> None:
        self._to_trace = Clocks(window["clocks"])
        self.count = len(actions.times)
        self._time = np.maximum.accumulate(np.array(actions.times, np.int64) * _MICRO)  # threads may overtake
        self._moments = _Moments(process, self._to_trace, self._time)
        self._starts, self._iterations = _begins(process, iterations, window["clocks"], self._to_trace)
        self._casts = bool(any(reading.get("autocast") for reading in process.readings))
        self._sizes = Counter({int(size): int(count) for size, count in window["sizes"]})
        self._calls = sorted((self._to_trace(b), self._to_trace(e), number) for number, b, e in actions.calls)
        self._held = {int(address): (int(size), str(what), str(dtype)) for address, size, what, dtype in window["held"]}
        self.borders = [(self._to_trace(time), *figures) for time, *figures in actions.borders]
        self.first = actions.borders[0][2]  # what there was before the first action
        self.pieces: list[Piece] = []
        self._read(actions)
        self.total = self.first + np.cumsum(np.array(actions.bytes, np.int64))
        steps = whole_steps(process, iterations, *window["measured"])
        self.steps = [self._actions_of(step) for step in steps]

    # -- at one action ----------------------------------------------------------------------------------------------

    def held(self, at: int) -> dict[str, dict[str, int]]:
        """Bytes that had been there before, by what they are and by type."""
        found: dict[str, dict[str, int]] = {}
        for size, what, dtype in self._held.values():
            types = found.setdefault(what, {})
            types[dtype] = types.get(dtype, 0) + size
        for what, dtype, action, size in self._given_back:
            if action <= at:
                found[what][dtype] -= size
        return {what: {dtype: size for dtype, size in types.items() if size} for what, types in found.items()}

    def living(self, at: int) -> list[Piece]:
        """Pieces that were taken in the window, and live."""
        return [piece for piece in self.pieces if piece.begin <= at < piece.end]

    def earlier(self, at: int) -> int:
        """Bytes of steps before the window that live, and that are given back later."""
        return sum(size for action, size in self._earlier if action > at)

    def step_of(self, at: int) -> int:
        """The iteration that an action is in."""
        return self._step(int(self._time[at]))

    def phase_of(self, at: int) -> int:
        """The phase that the training thread was in."""
        return int(self._moments.phase[at])

    def border_at(self, at: int) -> tuple[int, ...]:
        """The allocator's figures at the border that is nearest."""
        time = int(self._time[at])
        return min(self.borders, key=lambda border: abs(border[0] - time))

    # -- at every action --------------------------------------------------------------------------------------------

    def scaling(self) -> Ints:
        """Of all that lived, what grows with the batch."""
        changes = np.zeros(self.count + 1, np.int64)
        for piece in self.pieces:
            if piece.scales:
                changes[piece.begin] += piece.bytes
                changes[piece.end] -= piece.bytes
        for action, size in self._earlier:
            changes[0] += size
            changes[action] -= size
        return np.cumsum(changes[:-1])

    def of(self, what: str) -> Ints:
        """Of all that lived, what is for one thing."""
        changes = np.zeros(self.count + 1, np.int64)
        for piece in self.pieces:
            if piece.what == what:
                changes[piece.begin] += piece.bytes
                changes[piece.end] -= piece.bytes
        changes[0] += sum(size for size, kind, _ in self._held.values() if kind == what)
        for kind, _, action, size in self._given_back:
            changes[action] -= size * (kind == what)
        return np.cumsum(changes[:-1])

    def kept(self) -> Ints:
        """What there would be besides, if nothing were computed again but kept from the forward pass on."""
        changes = np.zeros(self.count + 1, np.int64)
        for piece, since in self._first_times():
            changes[since] += piece.bytes
            changes[piece.begin] -= piece.bytes
        for piece in self.pieces:
            if int(self._moments.phase[piece.begin]) == wire.RECOMPUTE and piece.what == TEMPORARY:  # nor would this be
                changes[piece.begin] -= piece.bytes
                changes[piece.end] += piece.bytes
        return np.cumsum(changes[:-1])

    def _first_times(self) -> Iterator[tuple[Piece, int]]:
        """Pieces that were computed again, and the action with which each was given up the first time.

        The same work takes pieces of the same sizes in the same order, and what was computed last is the first to be
        computed again. Where that is not found, it is taken to have been given up as the backward pass began.
        """
        moments = self._moments
        forward: list[Piece] = []
        by_stretch = groupby(self.pieces, key=lambda piece: int(moments.run[piece.begin]))
        for _, stretch in by_stretch:
            pieces = list(stretch)
            if int(moments.stage[pieces[0].begin]) == _FRONT:
                forward = pieces
            again = [piece for piece in pieces if int(moments.phase[piece.begin]) == wire.RECOMPUTE]
            limit = len(forward)
            for _, group in groupby(again, key=lambda piece: int(moments.recomputed[piece.begin])):
                same = list(group)
                at = _last([piece.bytes for piece in same[:_ALIKE]], [piece.bytes for piece in forward[:limit]])
                before = forward[at:limit] if at is not None else []
                for piece, first in zip_longest(same, before[: len(same)]):
                    since = (
                        first.end if first is not None and first.bytes == piece.bytes else moments.begins[piece.begin]
                    )
                    if piece.is_again and since < piece.begin:
                        yield piece, int(since)
                limit = at if at is not None else limit

    # -- how it is read ---------------------------------------------------------------------------------------------

    def _read(self, actions: Actions) -> None:
        begun: dict[int, int] = {}
        held = dict(self._held)
        ends: dict[int, int] = {}
        self._given_back: list[tuple[str, str, int, int]] = []  # what, type, action, bytes
        self._earlier: list[tuple[int, int]] = []  # action, bytes
        for at, (address, size) in enumerate(zip(actions.addresses, actions.bytes, strict=True)):
            if size > 0:
                begun[address] = at
            elif address in begun:
                ends[begun.pop(address)] = at
            elif address in held:
                size, what, dtype = held.pop(address)
                self._given_back.append((what, dtype, at, size))
            else:
                self._earlier.append((at, -size))
        # Pieces that were taken before each action, and before the end.
        self._taken = np.concatenate([[0], np.cumsum(np.array(actions.bytes, np.int64) > 0)])
        casts: dict[tuple[int, int], int] = {}
        for at, size in enumerate(actions.bytes):
            if size > 0:
                self.pieces.append(self._piece(at, ends.get(at, self.count), size, casts))

    def _piece(self, begin: int, end: int, size: int, casts: dict[tuple[int, int], int]) -> Piece:
        moments = self._moments
        stage, run, phase = int(moments.stage[begin]), int(moments.run[begin]), int(moments.phase[begin])
        passes = end < self.count and int(moments.run[end]) == run  # it ends in the stretch that it began in
        step = self._step(int(self._time[begin]))
        is_again = False
        if stage == _FRONT:
            what, scales = (TEMPORARY if passes else ACTIVATIONS), not self._is_cast(size, run, casts)
        elif stage == _BACK and phase == wire.RECOMPUTE and passes:
            is_again = self._outlives(begin, end)
            what, scales = (ACTIVATIONS if is_again else TEMPORARY), not self._is_cast(size, run, casts)
        elif stage == _BACK:
            what, scales = (TEMPORARY if passes else GRADIENTS), passes and not self._is_weight(size)
        elif stage == _UPDATE:
            what, scales = (TEMPORARY if passes else STATE), False
        else:
            what, scales = BATCH, True
        part = self._part(int(self._time[begin])) if what == ACTIVATIONS else -1
        return Piece(begin, end, size, what, part, step, scales, is_again)

    def _outlives(self, begin: int, end: int) -> bool:
        """Whether it is there for the work that follows on what is computed again, not only until that is over."""
        over = int(self._moments.recomputed[begin])
        return bool(self._taken[end] > self._taken[over])

    def _is_cast(self, size: int, run: int, casts: dict[tuple[int, int], int]) -> bool:
        """Whether it may be a parameter that autocast has made half as large: as many a pass as there are of a size."""
        if not self._casts or not self._sizes[size // HALF] or size % HALF:
            return False
        key = (run, size)
        casts[key] = casts.get(key, 0) + 1
        return casts[key] <= self._sizes[size // HALF]

    def _is_weight(self, size: int) -> bool:
        """Whether it has as many numbers as a parameter: a gradient on its way."""
        return bool(self._sizes[size // SINGLE] or self._sizes[size // HALF])

    def _step(self, time: int) -> int:
        row = int(np.searchsorted(self._starts, time, side="right")) - 1
        return self._iterations[row] if row >= 0 else -1

    def _part(self, time: int) -> int:
        at = bisect_right(self._calls, time, key=lambda call: call[0]) - 1
        _, end, number = self._calls[at] if at >= 0 else (0, 0, -1)
        return number if time < end else -1

    def _actions_of(self, step: list[tuple[int, int]]) -> Ints:
        inside = np.zeros(self.count, bool)
        for begin, end in step:
            inside |= (self._time >= self._to_trace(begin)) & (self._time < self._to_trace(end))
        return np.flatnonzero(inside)


def _last(wanted: list[int], sizes: list[int]) -> int | None:
    """Where a list stands in another for the last time."""
    starts = range(len(sizes) - len(wanted), -1, -1)
    return next((at for at in starts if sizes[at : at + len(wanted)] == wanted), None)


def _begins(
    process: Process, iterations: Iterations, clocks: list[list[int]], to_trace: Clocks
) -> tuple[Ints, list[int]]:
    """When the rows of the window begin, by the trace's clock, and the iterations that they belong to."""
    starts = np.round(process.starts() / _NANO).astype(np.int64)
    first = max(int(np.searchsorted(starts, clocks[0][0], side="right")) - 1, 0)
    last = int(np.searchsorted(starts, clocks[-1][0], side="right"))
    times = np.array([to_trace(int(start)) for start in starts[first:last]], np.int64)
    return times, [int(number) for number in iterations.of_row[first:last]]


class _Moments:
    """Of each action: its phase, the stretch of the step, the number of that stretch, the action that began with."""

    def __init__(self, process: Process, to_trace: Clocks, time: Ints) -> None:
        spans = sorted(to_trace.spans(process.spans), key=lambda span: span.begin)
        stage, stages, runs = _BEFORE, [], []
        run = 0
        for span in spans:
            now = _STAGES.get(span.phase, stage)
            run += now != stage
            stage = now
            stages.append(stage)
            runs.append(run)
        index = np.searchsorted(np.array([span.begin for span in spans], np.int64), time, side="right") - 1
        known = index >= 0
        index = np.maximum(index, 0)
        self.phase = _taken([span.phase for span in spans], index, known, wire.OTHER)
        self.stage = _taken(stages, index, known, _BEFORE)
        self.run = _taken(runs, index, known, -1)
        self.begins = np.searchsorted(self.run, self.run, side="left")
        others = np.append(np.flatnonzero(self.phase != wire.RECOMPUTE), len(time))
        self.recomputed = others[np.searchsorted(others, np.arange(len(time)))]  # the next action that is none


def _taken(values: list[int], index: Ints, known: Bools, otherwise: int) -> Ints:
    if not values:
        return np.full(len(index), otherwise, np.int64)
    found: Ints = np.where(known, np.array(values, np.int64)[index], otherwise)
    return found
