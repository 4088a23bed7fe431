"""Plays a thread's log of events back: which phase it was in at any moment, and the rows between its borders.

A batch asked of a loader is always a border between two rows. The end of an optimizer step is one if no batch came
since the last step, the end of a backward pass if neither did: so a program without a loader, or without torch.optim,
has borders too, and one that has them all leaves one row an iteration. What an iteration is, the analysis decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from floorit.clock import BASES, PENDING, Clock
from floorit.record import wire
from floorit.record.wire import (
    BACKWARD,
    DATA_WAIT,
    EPOCH_GAP,
    EVAL,
    FORWARD,
    H2D,
    LOSS,
    OPTIMIZER,
    OTHER,
    PHASES,
    RECOMPUTE,
)

_LOADING = (DATA_WAIT, EPOCH_GAP)

# What began a row.
START, BATCH, EXHAUSTED, OPTIMIZER_STEP, BACKWARD_CALL, TOLD, LEFT = range(7)
# What was seen in a row.
GRAD_FORWARD, NO_GRAD_FORWARD, COMPILED, ANOMALY, WINDOW, NAP = 1, 2, 4, 8, 16, 32
_LASTING = GRAD_FORWARD | ANOMALY  # which a nap does not see, and which last
_UNTOLD = (OTHER, H2D, FORWARD, LOSS, BACKWARD, OPTIMIZER)  # which it does not tell apart
CLOSELY = 64  # steps by which it is divided
LONG = 2  # times their median: such a step is a long one
MANY_LONG = 8  # of those steps that tell how a long one is divided; fewer may be another program's doing
MOST = 20  # times their mean: more of it is not divided
NEVER = (0, -1)  # between which two moments nothing lies
NO_QUEUE = 0xFFFF  # `ready` of a row whose loader has no queue

# What an open phase was opened by, besides the phases themselves.
_MODEL, _GRAD_MODEL, _PASS, _INNER_PASS, _CLOSURE, _NEXT, _INNER_NEXT, _CALLED_CLOSURE = range(100, 108)
_STEP = 1000  # + number of the optimizer
_LAST_OPTIMIZER = 31  # those beyond share its bit


class Row(msgspec.Struct):
    """What happened between two borders. Nanoseconds."""

    opened: int
    iterator: int = 0
    samples: int = 0
    optimizers: int = 0  # bits
    backwards: int = 0
    flags: int = 0
    ready: int = NO_QUEUE
    steps: int = 0
    end: int = 0
    spent: list[int] = []


class Look(msgspec.Struct, frozen=True):
    """One look at the stack, and the phase it fell into."""

    time: int
    stack: int
    leaf: int
    phase: int = PENDING
    iterator: int = 0


class Stretch(msgspec.Struct):
    """Time between two events of which the first came from a known line."""

    time: int
    place: int
    nanoseconds: int
    phase: int = PENDING
    iterator: int = 0


class Span(msgspec.Struct):
    """Time in one phase."""

    begin: int
    end: int
    phase: int
    place: int  # the program's line that it began at; 0: not known


class Nap:
    """A stretch in which the model, its gradients and the optimizer were not told apart: see record/naps.py.

    Their time is divided as it was in the last steps that were looked at closely, without the long ones: a step that
    another program held up does not tell how all others are divided. Where many are long, those are divided as such.
    What is far more than they took is left to the program's own code: something else happened there.
    """

    def __init__(self, closely: Iterable[Row]) -> None:
        rows = list(closely)
        self.flags = NAP | (rows[-1].flags & _LASTING if rows else 0)
        spent = [[row.spent[phase] for phase in _UNTOLD] for row in rows]
        took = [sum(row) for row in spent]
        self.most = int(MOST * sum(took) / len(took)) if took else 0  # of a row that is divided
        self.long = LONG * sorted(took)[len(took) // 2] if took else 0
        self.shares = _shares([row for row, total in zip(spent, took, strict=True) if total <= self.long])
        long = [row for row, total in zip(spent, took, strict=True) if total > self.long]
        self.shares_if_long = _shares(long) if len(long) >= MANY_LONG else self.shares

    def divide(self, spent: list[int]) -> None:
        """Divide what passed outside of what is told in a nap, too."""
        divided = min(spent[OTHER], self.most)
        spent[OTHER] -= divided
        for phase, share in self.shares if divided <= self.long else self.shares_if_long:
            spent[phase] += round(divided * share)


def _shares(rows: list[list[int]]) -> list[tuple[int, float]]:
    spent = [sum(each) for each in zip(*rows, strict=True)]
    return [(phase, part / sum(spent)) for phase, part in zip(_UNTOLD, spent, strict=True)] if sum(spent) else []


class Named(msgspec.Struct):
    """Calls that began in a row of a stretch that the program has named, and its own time in a phase of it."""

    row: int
    name: int
    phase: int
    calls: int
    nanoseconds: int


class _Moment(msgspec.Struct):
    """A point in an open row at which it may have to be split."""

    time: int
    spent: list[int]
    backwards: int
    named: dict[tuple[int, int], list[int]]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All that a replay goes on from where a row has just been cut, but for times, numbers and the last nap."""

    open: tuple[tuple[int, int], ...]
    current: int
    base: int
    becomes: int
    names: tuple[int, ...]
    opened: int  # and flags, of the open row
    flags: int
    batch_since_step: bool
    border_since_backward: bool
    is_counted: bool
    was_loss: bool
    is_between: bool
    naps: bool
    nap_flags: int  # 0 outside of naps


class SavedClock(msgspec.Struct, frozen=True):
    """A clock's attributes."""

    spent: list[int]
    open: list[tuple[int, int]]
    current: int
    since: int
    base: int
    becomes: int


class SavedNap(msgspec.Struct, frozen=True):
    """A nap's attributes."""

    flags: int
    most: int
    long: int
    shares: list[tuple[int, float]]
    shares_if_long: list[tuple[int, float]]


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """All of a replay between two events, to be written down: its attributes, but for what it has told."""

    clock: SavedClock
    nap: SavedNap
    closely: list[Row]
    unread: dict[int, tuple[int, list[int]]]
    _names: list[int]
    _named: dict[tuple[int, int], list[int]]
    _number: int
    _row: Row
    _ready: int
    _batch_since_step: bool
    _border_since_backward: bool
    _worked: _Moment | None
    _resumed: _Moment | None
    _stepped: _Moment | None
    _presumed: tuple[int, int] | None
    _called: _Moment | None
    _is_counted: bool
    _was_loss: bool
    _coming: list[Look]
    _pending_looks: list[Look]
    _lines: dict[int, int]
    _line: int
    _pending_stretches: list[Stretch]
    _in_window: bool
    _naps: bool
    _is_between: bool
    _pending_spans: list[Span]
    _marked: list[int] | None
    _marked_row: int
    _marked_at: int


class Point(NamedTuple):
    """Where a replay is: the times and numbers that go with its state."""

    since: int
    iterator: int  # and batches that wait, of the open row
    ready: int
    line: int  # the last event's
    number: int  # of the open row


class Replay:
    """The state after the events so far."""

    def __init__(self, started: int, spans_in: tuple[int, int] = NEVER) -> None:
        """Spans are told of the kernel window, and of what lies between the two moments `spans_in`."""
        self.clock = Clock(started)
        self._first, self._last = spans_in
        self.rows: list[Row] = []  # closed since they were last taken
        self.looks: list[Look] = []  # named since they were last taken
        self.stretches: list[Stretch] = []  # named since they were last taken
        self.spans: list[Span] = []  # named since they were last taken
        self.device: list[tuple[int, list[float]]] = []  # (number of the row, device seconds by phase)
        self.named: list[Named] = []  # since they were last taken
        self._names: list[int] = []  # stretches of the program's own that are open, outermost first
        self._named: dict[tuple[int, int], list[int]] = {}  # (name, phase) -> calls and nanoseconds in the open row
        self._number = 0
        self._row = Row(START)
        self._ready = NO_QUEUE
        self._batch_since_step = self._border_since_backward = False
        self._worked: _Moment | None = None  # the last training in the open row
        self._resumed: _Moment | None = None  # the first call of a model since then
        self._stepped: _Moment | None = None  # the first step in it
        # Networks that nothing trains, called after the step: averages of the weights, more likely than teachers.
        self._presumed: tuple[int, int] | None = None  # since when in the open row, and its evaluation until then
        self._called: _Moment | None = None  # the last call of a model without gradient in it, if nothing was trained
        self._is_counted = False  # whether the samples of the next backward pass are
        self._was_loss = False  # a gradient is taken inside what may be the loss
        self._coming: deque[Look] = deque()  # in the order of time, not reached yet
        self._pending_looks: list[Look] = []
        self._lines: dict[int, int] = {}  # time of an event -> the program's line that it came from
        self._line = 0  # of the last event
        self._pending_stretches: list[Stretch] = []
        self._in_window = False
        self.nap = Nap(())  # the last
        self._naps = False
        self._is_between = False  # whether the last row lay between two passes over data
        self.closely: deque[Row] = deque(maxlen=CLOSELY)  # the last steps that were looked at closely
        self._pending_spans: list[Span] = []
        self._marked: list[int] | None = None  # phases that ended at each mark of the stretch being marked
        self._marked_row = 0
        self._marked_at = 0
        self.unread: dict[int, tuple[int, list[int]]] = {}  # stretches marked whose device times are not known yet

    # -- what comes in -------------------------------------------------------------------------------------------

    def look(self, time: int, stack: int, leaf: int) -> None:
        """A look at the stack, to be named when the events reach it."""
        self._coming.append(Look(time, stack, leaf))

    def line(self, time: int, place: int) -> None:
        """The program's own line that an event came from."""
        self._lines[time] = place

    def feed(self, words: Iterable[int]) -> None:
        """Play back pairs of a time and a word."""
        numbers = iter(words)
        for time, word in zip(numbers, numbers, strict=True):
            self._event(time, word & wire.KIND, word >> wire.SHIFT)

    def skip(self, now: int) -> None:
        """A part of the log is lost: the row that it tore is not told, and nothing is known of the time up to now."""
        self._settled(self.clock.base)
        self.clock = Clock(now)
        self._row, self._worked, self._stepped, self._called = self._begin(EXHAUSTED), None, None, None
        self._marked = None
        self._cut(EXHAUSTED, 0)

    def marks(self, began: int, milliseconds: list[float]) -> None:
        """The device's times between the marks of a stretch."""
        row, phases = self.unread.pop(began, (0, []))
        if len(phases) != len(milliseconds):
            return  # two threads marked at once: which mark is whose is not known
        seconds = [0.0] * (PENDING + 1)
        for phase, ms in zip(phases, milliseconds, strict=True):
            seconds[phase] += ms * 1e-3
        self.device.append((row, seconds[:PENDING]))

    # -- what goes on ----------------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """What it goes on from, if a row has just been cut and nothing waits for its name; else None."""
        clock, row = self.clock, self._row
        begun = row.samples or row.optimizers or row.backwards or row.steps or any(clock.spent) or self._named
        waits = self._pending_looks or self._pending_stretches or self._pending_spans or self._coming
        is_marked = self._in_window or self._marked is not None or self._ready != NO_QUEUE
        if begun or waits or is_marked or self._worked or self._resumed or self._stepped or self._called:
            return None
        return State(
            open=tuple(clock.open),
            current=clock.current,
            base=clock.base,
            becomes=clock.becomes,
            names=tuple(self._names),
            opened=row.opened,
            flags=row.flags,
            batch_since_step=self._batch_since_step,
            border_since_backward=self._border_since_backward,
            is_counted=self._is_counted,
            was_loss=self._was_loss,
            is_between=self._is_between,
            naps=self._naps,
            nap_flags=self.nap.flags if self._naps else 0,
        )

    def go_on(self, state: State, at: Point) -> None:
        """Be where the state was taken, with times and numbers of its own."""
        clock = self.clock = Clock(at.since)
        clock.open, clock.current, clock.base, clock.becomes = (
            list(state.open),
            state.current,
            state.base,
            state.becomes,
        )
        self._row = Row(state.opened, at.iterator, flags=state.flags, ready=at.ready)
        self._line, self._number = at.line, at.number
        self._names = list(state.names)
        self._batch_since_step, self._border_since_backward = state.batch_since_step, state.border_since_backward
        self._is_counted, self._was_loss = state.is_counted, state.was_loss
        self._is_between, self._naps = state.is_between, state.naps
        self._worked = self._resumed = self._stepped = self._called = self._presumed = None

    def point(self) -> Point:
        """The times and numbers that belong to its state."""
        row = self._row
        return Point(self.clock.since, row.iterator, row.ready, self._line, self._number)

    def saved(self) -> Saved:
        """All that it goes on from."""
        attributes = {name: getattr(self, name) for name in Saved.__struct_fields__}
        attributes["clock"] = SavedClock(*(getattr(self.clock, name) for name in SavedClock.__struct_fields__))
        attributes["nap"] = SavedNap(*(getattr(self.nap, name) for name in SavedNap.__struct_fields__))
        for name in ("closely", "_coming"):
            attributes[name] = list(attributes[name])
        return Saved(**attributes)

    def resume(self, saved: Saved) -> None:
        """Be as it was when this was saved."""
        for name in Saved.__struct_fields__:
            setattr(self, name, getattr(saved, name))
        self.clock, self.nap = Clock(saved.clock.since), Nap(())
        for mine, its in ((self.clock, saved.clock), (self.nap, saved.nap)):
            for name in its.__struct_fields__:
                setattr(mine, name, getattr(its, name))
        self.closely, self._coming = deque(saved.closely, CLOSELY), deque(saved._coming)
        if self._stepped == self._worked:
            self._stepped = self._worked  # one moment

    # -- events --------------------------------------------------------------------------------------------------

    def _event(self, now: int, kind: int, operand: int) -> None:
        clock = self.clock
        is_leaf = wire.LEAF <= kind < wire.LEAF + len(PHASES)
        since = max(now - operand, clock.since) if is_leaf else now
        while self._coming and self._coming[0].time <= now:
            look = self._coming.popleft()
            self._name(look, clock.current if look.time <= since else kind - wire.LEAF)
        tells_spans = self._in_window or self._first <= now <= self._last
        if is_leaf:
            place = self._lines.pop(now, 0) if self._lines else 0
            if tells_spans:
                self._span(since, clock.current, self._line)
                self._spanned(Span(since, now, kind - wire.LEAF, place))
            if self._names:
                self._name_time(since, clock.current)
                self._name_time(now, kind - wire.LEAF, since)
            clock.passes(now)
            clock.leaf(kind - wire.LEAF, max(0, now - since))
            return
        if tells_spans:
            self._span(now, clock.current, self._line)
        if self._line:
            self._stretch(now)
        self._line = self._lines.pop(now, 0) if self._lines else 0
        if self._names:
            self._name_time(now, clock.current)
        clock.passes(now)
        if self._marked is not None and kind not in (wire.READY, wire.COMPILED):
            self._marked.append(clock.current)
        if kind < wire.OUT:
            self._enter(kind - wire.IN)
        elif kind < wire.LEAF:
            clock.leave(kind - wire.OUT)
        else:
            handler = _HANDLERS.get(kind)
            if handler is not None:
                handler(self, operand)
        if clock.settled is not None:
            self._settled(clock.settled)
            clock.settled = None

    def _enter(self, phase: int) -> None:
        clock = self.clock
        is_of_outer = (phase == RECOMPUTE and not clock.in_backward()) or (
            phase == EPOCH_GAP and clock.current in _LOADING
        )
        clock.enter(clock.current if is_of_outer else phase, phase)

    def _model_in(self, operand: int) -> None:
        clock, row = self.clock, self._row
        is_trained = operand & wire.TRAINED
        if clock.current == BACKWARD:
            clock.enter(RECOMPUTE, _MODEL)
        elif clock.current not in BASES:
            clock.enter(clock.current, _MODEL)
        elif operand & wire.OF_LOSS or (clock.current == PENDING and clock.becomes == LOSS and not is_trained):
            clock.enter(LOSS, _MODEL)
        elif not operand & wire.WITH_GRAD:
            row.flags |= NO_GRAD_FORWARD
            is_presumed = not is_trained and row.steps > 0
            evaluates = not operand & wire.TRAINING and (is_trained or is_presumed)
            if evaluates and is_presumed and self._presumed is None:
                self._presumed = (clock.since, clock.spent[EVAL])
            clock.enter(EVAL if evaluates else FORWARD, _MODEL)
        else:
            row.flags |= GRAD_FORWARD
            self._count_samples(operand >> wire.SAMPLES_SHIFT)
            clock.enter_settling(FORWARD, _GRAD_MODEL)
            if self._worked is not None and self._resumed is None:
                self._resumed = self._moment()

    def _count_samples(self, samples: int) -> None:
        """Of a batch that no loader has counted: by the first call of a model after the last backward pass."""
        row = self._row
        if row.opened == BATCH:
            row.samples = row.samples or samples
        elif not self._is_counted:
            row.samples += samples
            self._is_counted = bool(samples)

    def _model_out(self, _: int) -> None:
        if self.clock.leave(_MODEL, _GRAD_MODEL) == _GRAD_MODEL:
            self.clock.leave_forward()
        elif self._only_calls():
            self._called = self._moment()

    def _only_calls(self) -> bool:
        """Whether the open row is a batch with which a model was called, and nothing was trained."""
        row = self._row
        called = row.flags & (GRAD_FORWARD | NO_GRAD_FORWARD) == NO_GRAD_FORWARD
        return called and row.opened == BATCH and not row.backwards

    def _backward_in(self, operand: int) -> None:
        clock = self.clock
        if clock.in_backward():
            clock.enter_settling(BACKWARD, _INNER_PASS)  # reentrant
            return
        if operand & wire.WITH_ANOMALY:
            self._row.flags |= ANOMALY
        if self._presumed is not None:
            self._was_trained_with(*self._presumed)
        is_partial = bool(operand & wire.WITHOUT_ACCUMULATING)
        self._was_loss = is_partial and clock.current == PENDING and clock.becomes == LOSS
        clock.enter_settling(BACKWARD, _PASS, bool(operand & wire.LOSS_KNOWN))

    def _was_trained_with(self, since: int, before: int) -> None:
        """Another backward pass follows the step: what a network computed after it was not evaluation."""
        spent = self.clock.spent
        spent[FORWARD] += spent[EVAL] - before
        spent[EVAL] = before
        self._presumed = None
        self.looks = [
            msgspec.structs.replace(look, phase=FORWARD) if look.phase == EVAL and look.time >= since else look
            for look in self.looks
        ]

    def _backward_out(self, _: int) -> None:
        clock = self.clock
        if clock.leave(_PASS, _INNER_PASS) != _PASS:
            return
        clock.leave(_CLOSURE)  # what follows in it is taken for the optimizer's, unless it is known when it ends
        self._went_backward()
        if self._was_loss and not clock.open:  # a gradient inside the loss: the rest of it follows
            clock.leave_forward()

    def _step_in(self, operand: int) -> None:
        key = _STEP + (operand >> 1)
        self.clock.leave(key)  # still open: that step ended by an exception
        self.clock.enter_settling(OPTIMIZER, key)
        if operand & 1:  # a closure: the program's own code, up to its backward pass
            self.clock.enter(OTHER, _CLOSURE)

    def _step_out(self, optimizer: int) -> None:
        if self.clock.leave(_STEP + optimizer) is None:
            return
        if not any(key >= _STEP for key, _ in self.clock.open):  # else a wrapper around another optimizer
            self._stepped_by(optimizer)

    def _closure_in(self, _: int) -> None:
        if any(key >= _STEP for key, _ in self.clock.open):
            self.clock.leave(_CLOSURE)
            self.clock.enter(OTHER, _CALLED_CLOSURE)

    def _closure_out(self, _: int) -> None:
        if self.clock.current == PENDING:  # it has called the model and not gone backward
            self.clock.settle(self.clock.base)
        self.clock.leave(_CALLED_CLOSURE)

    def _next_in(self, iterator: int, phase: int = DATA_WAIT) -> None:
        clock, row = self.clock, self._row
        if clock.current in _LOADING:  # a loader inside a loader: the outer one's wait
            clock.enter(clock.current, _INNER_NEXT)
            return
        clock.unwind()
        if self._naps and row.opened == BATCH:
            row.backwards = row.backwards or 1  # without a step: a GradScaler may have skipped it
        if row.opened == EXHAUSTED and self._worked is not None:  # on a batch that was read ahead
            self._split(self._worked, EXHAUSTED)
        if iterator != row.iterator:
            self._leave()
        self._cut(BATCH, iterator)
        self._batch_since_step = self._border_since_backward = True
        self._row.ready, self._ready = self._ready, NO_QUEUE
        clock.enter(phase, _NEXT)

    def _next_fresh_in(self, iterator: int) -> None:
        self._next_in(iterator, EPOCH_GAP)

    def _next_out(self, operand: int) -> None:
        clock, row = self.clock, self._row
        if clock.leave(_NEXT, _INNER_NEXT) != _NEXT:
            return
        if operand:
            row.samples = operand - 1
        else:  # its row is what lies between two passes over the data
            row.opened = EXHAUSTED
            clock.spent[EPOCH_GAP] += clock.spent[DATA_WAIT]
            clock.spent[DATA_WAIT] = 0

    def _is_ready(self, count: int) -> None:
        self._ready = count

    def _adopted(self, iterator: int) -> None:
        """The time so far was another thread's."""
        self._cut(START, 0)
        self.clock = Clock(self.clock.since)
        if iterator:
            self._row.opened, self._row.iterator = BATCH, iterator
            self._batch_since_step = self._border_since_backward = True

    def _compiled(self, nanoseconds: int) -> None:
        """Compiling takes long: of the rows in that time, it was in the longest."""
        now = self.clock.since
        longest, most = self._row, sum(self.clock.spent)
        for row in reversed(self.rows):
            if row.end < now - nanoseconds:
                break
            if sum(row.spent) > most:
                longest, most = row, sum(row.spent)
        longest.flags |= COMPILED

    def _marks_in(self, _: int) -> None:
        self._marked, self._marked_row, self._marked_at = [], self._number, self.clock.since

    def _marks_out(self, _: int) -> None:
        if self._marked is not None:
            self.unread[self._marked_at] = (self._marked_row, self._marked)
            self._marked = None

    def _window_in(self, _: int) -> None:
        self._in_window = True
        self._row.flags |= WINDOW

    def _window_out(self, _: int) -> None:
        self._in_window = False

    def _nap_in(self, _: int) -> None:
        self.nap, self._naps = Nap(self.closely), True
        self._row.flags |= self.nap.flags

    def _nap_out(self, _: int) -> None:
        self._naps = False

    def _nap_step(self, optimizer: int) -> None:
        self._row.backwards = self._row.backwards or 1
        self._stepped_by(optimizer)

    def _named_in(self, name: int) -> None:
        self._names.append(name)
        self._named.setdefault((name, self.clock.current), [0, 0])[0] += 1

    def _named_out(self, name: int) -> None:
        if name in self._names:
            last = len(self._names) - 1 - self._names[::-1].index(name)
            del self._names[last]

    def _name_time(self, now: int, phase: int, since: int | None = None) -> None:
        """What passed up to now was the innermost name's own."""
        passed = max(now - max(self.clock.since, since or 0), 0)
        self._named.setdefault((self._names[-1], phase), [0, 0])[1] += passed

    def _step_ends(self, _: int) -> None:
        self._cut(TOLD, self._row.iterator)
        self._batch_since_step = self._border_since_backward = True  # no border of theirs comes before the next

    def _failed(self, _: int) -> None:
        """Nothing can be relied upon to end: begin again from outside."""
        self.clock.open.clear()
        self.clock.current = self.clock.base = OTHER

    def _end(self, _: int) -> None:
        """What came after the last training in an open row is not part of its iteration."""
        if self._worked is not None:
            self._split(self._worked, EXHAUSTED)
        self._leave()
        self._cut(START, 0)

    def _leave(self) -> None:
        """No more batches of this pass are asked for now, and none was missing: what came after the last call of a
        model with one may have nothing to do with it."""
        if self._called is not None and self._only_calls():
            self._split(self._called, LEFT)
            self._row.samples = 0

    # -- names ---------------------------------------------------------------------------------------------------

    def _name(self, look: Look, phase: int) -> None:
        if self._naps and phase in (OTHER, PENDING):
            return  # what it fell into is not known
        look = msgspec.structs.replace(look, phase=phase, iterator=self._row.iterator)
        (self._pending_looks if look.phase == PENDING else self.looks).append(look)

    def _stretch(self, now: int) -> None:
        clock = self.clock
        stretch = Stretch(now, self._line, now - clock.since, clock.current, self._row.iterator)
        (self._pending_stretches if stretch.phase == PENDING else self.stretches).append(stretch)

    def _span(self, end: int, phase: int, place: int) -> None:
        self._spanned(Span(self.clock.since, end, phase, place))

    def _spanned(self, span: Span) -> None:
        if span.end > span.begin:
            (self._pending_spans if span.phase == PENDING else self.spans).append(span)

    def _settled(self, phase: int) -> None:
        for span in self._pending_spans:
            span.phase = phase
        self.spans += self._pending_spans
        self._pending_spans.clear()
        if self._pending_looks:
            self.looks += [msgspec.structs.replace(look, phase=phase) for look in self._pending_looks]
            self._pending_looks.clear()
        for stretch in self._pending_stretches:
            stretch.phase = phase
        self.stretches += self._pending_stretches
        self._pending_stretches.clear()
        if self._marked is not None:
            self._marked[:] = [phase if marked == PENDING else marked for marked in self._marked]
        self._settle_named(phase)

    def _settle_named(self, phase: int) -> None:
        """What was pending has a name now."""
        for name, pending in [key for key in self._named if key[1] == PENDING]:
            calls, passed = self._named.pop((name, pending))
            known = self._named.setdefault((name, phase), [0, 0])
            known[0] += calls
            known[1] += passed

    # -- rows ----------------------------------------------------------------------------------------------------

    def _stepped_by(self, optimizer: int) -> None:
        bit = 1 << min(optimizer, _LAST_OPTIMIZER)
        if self._row.optimizers & bit and self._stepped is not None:
            self._split(self._stepped, OPTIMIZER_STEP)  # its second since the batch: that is not what makes the steps
        row = self._row
        row.optimizers |= bit
        row.steps += 1
        self._border_since_backward = True
        if self._batch_since_step:
            self._batch_since_step = False
            self._worked = self._stepped = self._moment()
        else:
            self._cut(OPTIMIZER_STEP, row.iterator)

    def _went_backward(self) -> None:
        self._row.backwards += 1
        self._is_counted = False
        if self._border_since_backward:
            self._border_since_backward = False
            self._worked = self._moment()
            return
        if self._batch_since_step and self._resumed is not None:
            self._split(self._resumed, BACKWARD_CALL)  # it may be the work on another batch, read ahead
            self._row.samples = 0
            self._worked = self._moment()
        else:
            self._cut(BACKWARD_CALL, self._row.iterator)

    def _moment(self) -> _Moment:
        named = {key: value[:] for key, value in self._named.items()}
        return _Moment(self.clock.since, self.clock.spent[:], self._row.backwards, named)

    def _split(self, moment: _Moment, opened: int) -> None:
        """End the open row at an earlier moment; what came since belongs to a row that began then."""
        clock, row, before = self.clock, self._row, moment.spent
        self._resumed = self._presumed = None
        before[clock.base] += before[PENDING]
        before[PENDING] = 0
        flags = row.flags & WINDOW
        self._row = Row(opened, row.iterator, row.samples, backwards=row.backwards - moment.backwards, flags=flags)
        row.backwards = moment.backwards
        clock.spent[:] = [total - part for total, part in zip(clock.spent, before, strict=True)]
        named, self._named = self._named, moment.named
        for key, (calls, passed) in moment.named.items():
            since = named.setdefault(key, [0, 0])
            since[:] = [since[0] - calls, since[1] - passed]
        self._close(row, moment.time, before)
        self._named = named

    def _cut(self, opened: int, iterator: int) -> None:
        row, self._row = self._row, self._begin(opened, iterator)
        self._worked = self._resumed = self._stepped = self._called = self._presumed = None
        self._close(row, self.clock.since, self.clock.cut())

    def _begin(self, opened: int, iterator: int = 0) -> Row:
        return Row(opened, iterator, flags=(WINDOW if self._in_window else 0) | (self.nap.flags if self._naps else 0))

    def _close(self, row: Row, end: int, spent: list[int]) -> None:
        row.end, row.spent = end, spent[:PENDING]
        is_first, self._is_between = self._is_between, row.opened == EXHAUSTED
        if not row.flags & NAP:
            if row.steps and not is_first and not row.flags & (WINDOW | COMPILED):
                self.closely.append(row)  # the first step of a pass is not like the others
        elif row.opened == BATCH:
            self.nap.divide(row.spent)
        if self._named:
            self._settle_named(self.clock.base if self.clock.settled is None else self.clock.settled)
            self.named += [Named(self._number, *key, *spent) for key, spent in self._named.items() if any(spent)]
            self._named = {}
        self.rows.append(row)
        self._number += 1


_HANDLERS = {
    wire.MODEL_IN: Replay._model_in,
    wire.MODEL_OUT: Replay._model_out,
    wire.BACKWARD_IN: Replay._backward_in,
    wire.BACKWARD_OUT: Replay._backward_out,
    wire.STEP_IN: Replay._step_in,
    wire.STEP_OUT: Replay._step_out,
    wire.CLOSURE_IN: Replay._closure_in,
    wire.CLOSURE_OUT: Replay._closure_out,
    wire.NEXT_IN: Replay._next_in,
    wire.NEXT_FRESH_IN: Replay._next_fresh_in,
    wire.NEXT_OUT: Replay._next_out,
    wire.READY: Replay._is_ready,
    wire.ADOPTED: Replay._adopted,
    wire.COMPILED: Replay._compiled,
    wire.MARKS_IN: Replay._marks_in,
    wire.MARKS_OUT: Replay._marks_out,
    wire.FAILED: Replay._failed,
    wire.END: Replay._end,
    wire.WINDOW_IN: Replay._window_in,
    wire.WINDOW_OUT: Replay._window_out,
    wire.NAP_IN: Replay._nap_in,
    wire.NAP_OUT: Replay._nap_out,
    wire.NAP_STEP: Replay._nap_step,
    wire.NAMED_IN: Replay._named_in,
    wire.NAMED_OUT: Replay._named_out,
    wire.STEP_ENDS: Replay._step_ends,
}
