"""What the replay makes of a sequence of events, learnt once: steps of a training loop repeat the same few.

Which phase each interval is booked to, which rows are made, where a look at the stack falls: all of it follows from the
kinds of the events and from the state before them, not from their times. So a sequence is played once to a replay with
times of which sums can be taken apart again: the interval number n lasts BASE ** n. What comes out says which
intervals make up which number, and holds for every repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.record import wire
from floorit.record.wire import OTHER, SHIFT
from floorit.replay import NO_QUEUE, Nap, Point, Replay, Row, State

_BITS = 8
BASE = 1 << _BITS
LONGEST = 400  # events: numbers as long as that take long
CARRIED = -1  # in place of an event's number: what was so before the first event
NOT_TOLD = -2
_LINE = 2  # the line of event n while learning is n + _LINE, and that of the event before the first one less
# What does not follow from the sequence alone: it looks at rows that were made before, or at how long they took.
_BY_OTHERS = frozenset((wire.ADOPTED, wire.COMPILED, wire.WINDOW_IN, wire.WINDOW_OUT, wire.NAP_IN, wire.NAP_OUT))

Ints = NDArray[np.int64]


class Sum(msgspec.Struct, frozen=True):
    """Numbers (of intervals, of events) to be added, each so many times."""

    terms: tuple[tuple[int, int], ...]

    def of(self, values: Ints) -> Ints:
        """The sum for each repetition; `values` has a line for each number."""
        total = np.zeros(values.shape[1:], np.int64)
        for number, times in self.terms:
            total += values[number] if times == 1 else times * values[number]
        return total


class RowMade(msgspec.Struct, frozen=True, kw_only=True):
    """One of the rows that a sequence leaves."""

    opened: int
    optimizers: int
    backwards: int
    flags: int
    steps: int
    end: int  # the event it ended at
    iterator: int  # the event that told of it; NOT_TOLD: none
    ready: int  # the same
    samples: Sum  # that events tell of
    spent: tuple[tuple[int, Sum], ...]  # by phase, of intervals
    is_close: bool  # whether the next nap is divided by it


class NamedMade(msgspec.Struct, frozen=True, kw_only=True):
    """Calls and time of a stretch that the program has named."""

    row: int
    name: int
    phase: int
    calls: int
    nanoseconds: Sum


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch that was marked on the GPU's clock."""

    event: int  # that began it
    row: int
    phases: list[int]


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a look or a line that falls on an event: by the event, with the one before them all first.

    Of looks there are as many again, for those that fall before the part that an event takes of the interval.
    """

    order: Ints  # in which they are told; NOT_TOLD: not at all
    phase: Ints
    iterator: Ints  # the event that told of it
    event: Ints  # at which it is told


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a sequence does to a replay that was in a certain state."""

    length: int  # events
    leaves: tuple[int, ...]  # events that take a part of the interval before them: it is cut in two
    rows: list[RowMade]
    named: list[NamedMade]
    marked: list[Marked]
    looks: Landing
    lines: Landing  # of the program's own code: what passed since the line was reached
    after: State
    iterator: int  # of the row that is open after it: the event that told of it
    ready: int


class Patterns:
    """The effects that have been learnt."""

    def __init__(self) -> None:
        self._known: dict[tuple[State, bytes], Effect | None] = {}

    def effect(self, state: State, words: Ints) -> Effect | None:
        """Of a sequence of words as `plain` leaves them; None where it must be played."""
        key = (state, words.tobytes())
        if key not in self._known:
            try:
                self._known[key] = learn(state, words.tolist())
            except ValueError:  # words that we do not write
                self._known[key] = None
        return self._known[key]


# By the kind of a word: which bits of it decide what happens, and, of a number that is only passed on, up to which it
# does (none, one sample, more).
_DECIDES = np.full(wire.KIND + 1, -1, np.int64)
_DECIDES[
    [wire.READY, wire.NEXT_IN, wire.NEXT_FRESH_IN, wire.NEXT_OUT, *range(wire.LEAF, wire.LEAF + len(wire.PHASES))]
] = wire.KIND
_DECIDES[wire.MODEL_IN] = (1 << SHIFT + wire.SAMPLES_SHIFT) - 1
_PASSES_ON = _DECIDES != -1
_NUMBER_AT = np.zeros(wire.KIND + 1, np.int64)
_UP_TO = np.zeros(wire.KIND + 1, np.int64)
_NUMBER_AT[wire.NEXT_OUT], _UP_TO[wire.NEXT_OUT] = SHIFT, 2
_NUMBER_AT[wire.MODEL_IN], _UP_TO[wire.MODEL_IN] = SHIFT + wire.SAMPLES_SHIFT, 1
_NEXT = (wire.NEXT_IN, wire.NEXT_FRESH_IN)


def plain(words: Ints) -> Ints:
    """The words without what only is passed on; where a batch is asked for, whether of the pass that was asked last."""
    some = np.flatnonzero(_PASSES_ON[words & wire.KIND])
    short = words[some]
    kinds = short & wire.KIND
    at = _NUMBER_AT[kinds]
    decides = words.copy()
    decides[some] = short & _DECIDES[kinds] | np.minimum(short >> at, _UP_TO[kinds]) << at
    asks = some[np.isin(kinds, _NEXT)]
    decides[asks] |= (np.diff(words[asks] >> SHIFT, prepend=-1) == 0).astype(np.int64) << SHIFT
    return decides


def samples(words: Ints) -> Ints:
    """How many samples they tell of, where they are words that do."""
    of_model: Ints = words >> SHIFT + wire.SAMPLES_SHIFT
    return np.where(words & wire.KIND == wire.MODEL_IN, of_model, (words >> SHIFT) - 1)


def learn(state: State, words: Sequence[int]) -> Effect | None:
    """Play a sequence to a replay in that state, with times that can be told apart."""
    if len(words) > LONGEST or any(word & wire.KIND in _BY_OTHERS for word in words):
        return None
    replay = Replay(0)
    replay.go_on(state, Point(0, CARRIED, CARRIED, CARRIED + _LINE, 0))
    replay.nap = Nap(())
    replay.nap.flags = state.nap_flags
    times, played, leaves = _with_times(words)
    for event, time in enumerate(times):
        if event in leaves:
            replay.look(time - (played[2 * event + 1] >> SHIFT), len(words) + 1 + event, 0)
        replay.look(time, event, 0)
        replay.line(time, event + _LINE)
    replay.feed(played)
    after, point = replay.state(), replay.point()
    if after is None:
        return None
    events = {time: event for event, time in enumerate([0, *times], CARRIED)}
    return Effect(
        length=len(words),
        leaves=leaves,
        rows=[_row_made(row, events, replay.closely) for row in replay.rows],
        named=[
            NamedMade(row=n.row, name=n.name, phase=n.phase, calls=n.calls, nanoseconds=_sum(n.nanoseconds))
            for n in replay.named
        ],
        marked=[Marked(event=events[at], row=row, phases=phases) for at, (row, phases) in replay.unread.items()],
        looks=_in_turn(_told(2 * len(words) + 1, [(k.stack, k.phase, k.iterator, k.stack) for k in replay.looks])),
        lines=_told(
            len(words),
            [(s.place - _LINE, s.phase, s.iterator, events[s.time]) for s in replay.stretches if s.phase == OTHER],
        ),
        after=after,
        iterator=_source(point.iterator, 0),
        ready=_source(point.ready, NO_QUEUE),
    )


def _with_times(words: Sequence[int]) -> tuple[list[int], list[int], tuple[int, ...]]:
    """When each event happens, the log of it, and which events cut the interval before them in two."""
    now, interval, times, played, leaves, asked = 0, 1, [], [], [], CARRIED
    for event, word in enumerate(words):
        now += interval
        interval <<= _BITS
        kind = word & wire.KIND
        if wire.LEAF <= kind < wire.LEAF + len(wire.PHASES):
            leaves.append(event)
            word = interval << SHIFT | kind
            now += interval
            interval <<= _BITS
        times.append(now)
        if kind in _NEXT:
            asked = asked if word >> SHIFT else event + 1
            word = asked << SHIFT | kind
        played += [now, _numbered(word, kind, event)]
    return times, played, tuple(leaves)


def _numbered(word: int, kind: int, event: int) -> int:
    """The word with numbers of which it can be told that they came from this event."""
    if kind == wire.READY:
        return event + 1 << SHIFT | kind
    many = 1 << _BITS * event
    if kind == wire.NEXT_OUT and word >> SHIFT > 1:
        return 1 + many << SHIFT | kind
    if kind == wire.MODEL_IN:
        at = SHIFT + wire.SAMPLES_SHIFT
        return (word & (1 << at) - 1) | (many << at if word >> at else 0)
    return word


def _sum(number: int) -> Sum:
    """Which intervals (or events) a number was made up of."""
    terms, at = [], 0
    while number:
        times = (number + BASE // 2) % BASE - BASE // 2
        if times:
            terms.append((at, times))
        number, at = (number - times) >> _BITS, at + 1
    return Sum(tuple(terms))


def _row_made(row: Row, events: dict[int, int], closely: Iterable[Row]) -> RowMade:
    return RowMade(
        opened=row.opened,
        optimizers=row.optimizers,
        backwards=row.backwards,
        flags=row.flags,
        steps=row.steps,
        end=events[row.end],
        iterator=_source(row.iterator, 0),
        ready=_source(row.ready, NO_QUEUE),
        samples=_sum(row.samples),
        spent=tuple((phase, _sum(spent)) for phase, spent in enumerate(row.spent) if spent),
        is_close=any(close is row for close in closely),
    )


def _source(number: int, none: int) -> int:
    """The event that a number came from, see `_numbered`."""
    if number == CARRIED:
        return CARRIED
    return NOT_TOLD if number == none else number - 1


def _told(length: int, told: list[tuple[int, int, int, int]]) -> Landing:
    """(event it fell on, phase, iterator, event at which it is told) in the order in which they are told."""
    table = np.full((4, length + 1), NOT_TOLD, np.int64)
    for order, (fell_on, phase, iterator, event) in enumerate(told):
        table[:, fell_on - CARRIED] = (order, phase, _source(iterator, 0), event)
    return Landing(order=table[0], phase=table[1], iterator=table[2], event=table[3])


def _in_turn(looks: Landing) -> Landing:
    """Looks at both parts of an interval that an event cuts in two, where both are told at once: as they come in."""
    late, early = np.split(looks.order, 2)
    early[early == late - 1] += 1
    return looks
