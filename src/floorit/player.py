"""Plays a log back: steps that repeat all at once, as was learnt of the first of them, and the rest event by event.

What comes out is what `Replay` alone would make of it, to the nanosecond and in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

import msgspec
import numpy as np

from floorit import tables
from floorit.patterns import CARRIED, LONGEST, NOT_TOLD, Effect, Ints, Landing, Patterns, RowMade, plain, samples
from floorit.record import wire
from floorit.record.wire import OTHER, PHASES, SHIFT
from floorit.replay import BATCH, CLOSELY, NAP, NO_QUEUE, Nap, Point, Replay, Row, Saved, Span, State
from floorit.tables import NANO, Rows

EVENT = 16  # bytes
NEVER = np.iinfo(np.int64).max
NEAR = 10**6  # nanoseconds by which two threads may tell of what they did in the wrong order
UNUSUAL = -1  # number of a sequence that must be played
WORTH = 8  # sequences of events, one after the other: fewer are played as fast one by one
MOST_LET_PASS = 1 << 10  # sequences, where attempts to leap fail again and again
# What ends a sequence, and so begins the next: the first of these that a log has.
_ENDS = ((wire.STEP_ENDS,), (wire.NEXT_IN, wire.NEXT_FRESH_IN), (wire.STEP_OUT, wire.NAP_STEP), (wire.BACKWARD_OUT,))
# Sums over a sequence tell it from others: of its words, mixed, each times the number of its place.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)
_PLACES = np.random.Generator(np.random.PCG64(1)).integers(1, 1 << 63, LONGEST, np.uint64) | np.uint64(1)


class SavedPlayer(msgspec.Struct, frozen=True, kw_only=True):
    """A player between two parts of the log, to be written down."""

    replay: Saved
    looks: list[list[int]]  # and lines, of moments that the log has not reached
    lines: list[list[int]]


class _Notes:
    """What is told of moments that the log has not reached yet: the time first, then some numbers."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._told: list[tuple[int, Sequence[Sequence[int]]]] = []  # after how many events it came in

    def add(self, told: Sequence[Sequence[int]], after: int) -> None:
        """They came in after so many events, of those that are not played yet."""
        if set(map(len, told)) - {self._columns}:
            raise ValueError(told)
        self._told.append((after, told))

    def take(self) -> tuple[Ints, Ints]:
        """All that was told, and after how many events each came in."""
        told, self._told = self._told, []
        came = np.repeat(*np.array([(0, 0), *((after, len(some)) for after, some in told)], np.int64).T)
        numbers = chain.from_iterable(one for _, some in told for one in some)
        return np.fromiter(numbers, np.int64, self._columns * len(came)).reshape(-1, self._columns), came

    def keep(self, left: Ints) -> None:
        """Those that what has been played does not reach."""
        self._told.append((0, left.tolist()))

    def left(self) -> list[list[int]]:
        """All of them."""
        return [list(one) for _, some in self._told for one in some]


class Player:
    """One thread's log. What it makes of it stands in its lists until it is taken."""

    def __init__(self, started: int, patterns: Patterns) -> None:
        self._replay = Replay(started)
        self._patterns = patterns
        self._logs: list[bytes] = []  # times and words, not played yet
        self._taken = 0  # events in them
        self._looks, self._lines = _Notes(3), _Notes(2)
        self._marks: list[tuple[int, list[float]]] = []
        self.rows: list[Rows] = []
        self.named: list[Rows] = []
        self.device: list[Rows] = []
        self.looks: list[Rows] = []
        self.stretches: list[Rows] = []
        self.spans: list[Span] = []

    # -- what comes in -------------------------------------------------------------------------------------------

    def log(self, part: bytes) -> None:
        """A part of the log: times and words in turn."""
        if not part or len(part) % EVENT:
            raise ValueError("no whole events")
        self._logs.append(part)
        self._taken += len(part) // EVENT

    def looked(self, looks: Sequence[Sequence[int]]) -> None:
        """Looks at the stack: time, stack, innermost line."""
        self._looks.add(looks, self._taken)

    def lines(self, lines: Sequence[Sequence[int]]) -> None:
        """The program's own lines that events come from which are not in the log yet: time of the event, place."""
        self._lines.add(lines, self._taken)

    def marks(self, began: int, milliseconds: list[float]) -> None:
        """The device's times between the marks of a stretch."""
        self._marks.append((began, milliseconds))

    def lost(self, now: int) -> None:
        """A part of the log is missing before what comes in next."""
        self.play()
        self._replay.skip(now)

    # -- what is made of it --------------------------------------------------------------------------------------

    def play(self) -> None:
        """Play back what has come in."""
        logs, self._logs, self._taken = self._logs, [], 0
        if logs:
            part = _Part(logs, self._looks.take(), self._lines.take())
            self._play(part)
            self._looks.keep(part.looks_left)
            self._lines.keep(part.lines_left)
        for began, milliseconds in self._marks:
            self._replay.marks(began, milliseconds)
        self._marks.clear()
        self._take()

    def saved(self) -> SavedPlayer:
        """All that it goes on from, where everything that has come in is played."""
        return SavedPlayer(replay=self._replay.saved(), looks=self._looks.left(), lines=self._lines.left())

    def resume(self, saved: SavedPlayer) -> None:
        """Be as it was when this was saved."""
        self._replay.resume(saved.replay)
        self._looks, self._lines = _Notes(3), _Notes(2)
        self._looks.add(saved.looks, 0)
        self._lines.add(saved.lines, 0)

    def _play(self, part: _Part) -> None:
        foreseen = _Foreseen(self._patterns, part)
        at, played, failed = 0, 0, 0  # sequence, event, attempts on end
        while (at := part.next_alike(at)) < len(part.starts) - 1:
            self._feed(part, played, int(part.starts[at]))
            played = int(part.starts[at])
            state = self._replay.state()
            is_clean = state is not None and self._replay.clock.since == part.times[played - 1]
            which = foreseen.from_on(state, at) if state is not None and is_clean else []
            if len(which) >= WORTH:
                self._take()
                _Leap(part, at, foreseen.effects, np.array(which), self._replay).into(self)
                at, failed = at + len(which), 0
                played = int(part.starts[at])
            else:
                at, failed = at + len(which) + min(1 << failed, MOST_LET_PASS), failed + 1
        self._feed(part, played, len(part.times))

    def _feed(self, part: _Part, begin: int, end: int) -> None:
        """Play some events one by one."""
        replay = self._replay
        for event, place in zip(*part.lines_between(begin, end), strict=True):
            replay.line(int(part.times[event]), int(place))
        for stop, look in part.pauses(begin, end):
            with suppress(ValueError, KeyError, TypeError, IndexError):  # of words that we do not write
                replay.feed(part.events[begin:stop].ravel().tolist())
            begin = stop
            if look is None:
                self._take()
            else:
                replay.look(*look)

    def _take(self) -> None:
        """Take over what the replay has told."""
        replay = self._replay
        if replay.rows:
            self.rows.append(tables.of_rows(replay.rows))
        if replay.named:
            self.named.append(tables.of_named(replay.named))
        if replay.device:
            self.device.append(np.array(replay.device, tables.DEVICE_ROW))
        if replay.looks:
            self.looks.append(tables.of_looks(replay.looks))
        if replay.stretches:
            self.stretches.append(tables.of_stretches(replay.stretches))
        self.spans += replay.spans
        for told in (replay.rows, replay.named, replay.device, replay.looks, replay.stretches, replay.spans):
            told.clear()


class _Part:
    """A part of the log with all that belongs to it, cut into sequences."""

    def __init__(self, logs: list[bytes], looks: tuple[Ints, Ints], lines: tuple[Ints, Ints]) -> None:
        self.events = np.frombuffer(b"".join(logs), "<i8").reshape(-1, 2)
        self.times, self.words = np.ascontiguousarray(self.events[:, 0]), np.ascontiguousarray(self.events[:, 1])
        self._kinds = self.words & wire.KIND
        self._looks, self._reached = looks[0], _reached(self.times, looks[0][:, 0], looks[1])
        self.looks_left = self._looks[self._reached == len(self.times)]
        self._line_events, self._line_places, self.lines_left = _on_events(self.times, *lines)
        borders = np.cumsum([0, *map(len, logs)]) // EVENT
        self._of_frames = np.unique(np.searchsorted(borders, np.flatnonzero(self._kinds == wire.COMPILED), "right") - 1)
        self._frames = borders  # where each frame began
        self.starts = self._cut()
        pattern = self._compare()
        self.pattern: list[int] = pattern.tolist()  # the same for sequences that are alike; UNUSUAL
        self.repeats: list[int] = _repeats(pattern).tolist()  # how often each comes on end
        self._alike = np.flatnonzero(_in_rows_of(pattern != UNUSUAL, WORTH))

    def _cut(self) -> Ints:
        """Where sequences begin, each after what ended the one before; the last is where whole ones end."""
        for kinds in _ENDS:
            ends = np.flatnonzero(np.isin(self._kinds, kinds))
            if len(ends) > WORTH:
                return ends + 1
        return np.zeros(1, np.int64)

    def _compare(self) -> Ints:
        """A number for each sequence, the same for those that are alike."""
        starts = self.starts
        count = len(starts) - 1
        if not count:
            return np.zeros(0, np.int64)
        lengths = np.diff(starts)
        inside = slice(int(starts[0]), int(starts[-1]))
        self.plain = plain(self.words)
        place = np.minimum(np.arange(inside.start, inside.stop) - np.repeat(starts[:-1], lengths), LONGEST - 1)
        mixed = self.plain[inside].astype(np.uint64) * _MIX
        mixed = (mixed ^ mixed >> _HIGH) * _PLACES[place]
        sums = np.add.reduceat(mixed, starts[:-1] - starts[0]) + lengths.astype(np.uint64)
        _, pattern, seen = np.unique(sums, return_inverse=True, return_counts=True)
        usual = (seen[pattern] >= WORTH) & (lengths <= LONGEST)
        back = np.flatnonzero(np.diff(self.times) < 0) + 1  # two threads were about to tell: time went back
        usual[np.clip(np.searchsorted(starts, back, "right") - 1, 0, count - 1)] = False
        for frame in self._of_frames.tolist():  # what compiled is looked for in the rows of the whole frame
            first, last = np.searchsorted(starts, self._frames[frame : frame + 2], "right") - 1
            usual[max(first, 0) : last + 1] = False
        return np.where(usual, pattern, UNUSUAL)

    def next_alike(self, at: int) -> int:
        """The next sequence that may be leapt over with others."""
        found = np.searchsorted(self._alike, at)
        return int(self._alike[found]) if found < len(self._alike) else len(self.starts)

    def sequence(self, at: int) -> Ints:
        """Its words, without what only is passed on."""
        return self.plain[self.starts[at] : self.starts[at + 1]]

    # -- looks and lines -----------------------------------------------------------------------------------------

    def pauses(self, begin: int, end: int) -> list[tuple[int, list[int] | None]]:
        """Up to where events are played at once: looks that come then, and None where what was told is to be taken."""
        looks = list(zip(*(column.tolist() for column in self.looks_between(begin, end)), strict=True))
        fences = [(int(at), None) for at in self._frames[self._of_frames] if begin <= at < end]
        return sorted([*fences, *looks, (end, None)], key=lambda pause: pause[0])

    def looks_between(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """The events on which looks fall, of these, and the looks."""
        first, last = np.searchsorted(self._reached, (begin, end))
        return self._reached[first:last], self._looks[first:last]

    def lines_between(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """Which of these events came from known lines, and from which."""
        first, last = np.searchsorted(self._line_events, (begin, end))
        return self._line_events[first:last], self._line_places[first:last]


def _on_events(times: Ints, lines: Ints, came: Ints) -> tuple[Ints, Ints, Ints]:
    """The events that came from known lines, in order, and from which; and the lines of events that are to come."""
    at, places = lines.T
    order = np.argsort(times, kind="stable") if (np.diff(times) < 0).any() else np.arange(len(times))
    ordered = np.append(times[order], NEVER)
    found = np.searchsorted(ordered, at)
    while (late := (ordered[found] == at) & (np.append(order, NEVER)[found] < came)).any():
        found += late  # to the next event of the same time
    fits = ordered[found] == at
    events, places = order[found[fits]], places[fits]
    by_event = np.argsort(events, kind="stable")
    last = by_event[np.diff(events[by_event], append=NEVER) > 0]
    return events[last], places[last], lines[~fits & (at > ordered[-2] - NEAR)]


def _reached(times: Ints, looks: Ints, came: Ints) -> Ints:
    """The event at which each look is named: the first after it, of those that came in after it; in order."""
    reached = np.maximum(np.searchsorted(np.maximum.accumulate(times), looks), came)
    for late in np.flatnonzero(times[np.minimum(reached, len(times) - 1)] < looks).tolist():
        after = np.flatnonzero(times[reached[late] :] >= looks[late])
        reached[late] = reached[late] + after[0] if len(after) else len(times)
    ordered: Ints = np.maximum.accumulate(reached)
    return ordered


def _repeats(numbers: Ints) -> Ints:
    """How many from each on are the same."""
    ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
    at = np.arange(len(numbers))
    left: Ints = ends[np.searchsorted(ends, at, "right")] - at
    return left


def _in_rows_of(flags: np.ndarray, many: int) -> np.ndarray:
    """Which of those that are true have as many of them on end, themselves the first."""
    ends = np.flatnonzero(~np.append(flags, False))
    at = np.arange(len(flags))
    left: np.ndarray = ends[np.searchsorted(ends, at)] - at >= many
    return left


class _Foreseen:
    """What the sequences of a part will do, one after the other."""

    def __init__(self, patterns: Patterns, part: _Part) -> None:
        self._patterns = patterns
        self._part = part
        self._next: dict[tuple[int, int], tuple[int, int] | None] = {}  # (state, pattern) -> effect, next state
        self._states: dict[State, int] = {}
        self.effects: list[Effect] = []

    def from_on(self, state: State, at: int) -> list[int]:
        """The numbers of the effects from a sequence on, as far as they are known."""
        found: list[int] = []
        now, known = self._number(state), self._next
        while at < len(self._part.pattern):
            key = (now, self._part.pattern[at])
            if key not in known:
                known[key] = self._learn(self.effects[found[-1]].after if found else state, at)
            following = known[key]
            if following is None:
                break
            effect, after = following
            times = self._part.repeats[at] if after == now else 1  # it goes on as it began
            found += [effect] * times
            now, at = after, at + times
        return found

    def _learn(self, state: State, at: int) -> tuple[int, int] | None:
        if self._part.pattern[at] == UNUSUAL:
            return None
        effect = self._patterns.effect(state, self._part.sequence(at))
        if effect is None:
            return None
        self.effects.append(effect)
        return len(self.effects) - 1, self._number(effect.after)

    def _number(self, state: State) -> int:
        return self._states.setdefault(state, len(self._states))


class _Leap:
    """Many sequences at once, each with the effect that is known of it."""

    def __init__(self, part: _Part, first: int, effects: list[Effect], which: Ints, replay: Replay) -> None:
        """`which` of the effects each sequence from the first on has."""
        self._part = part
        self._replay = replay
        self._from = replay.point()
        used, self._which = np.unique(which, return_inverse=True)
        self._effects = [effects[number] for number in used]
        self._starts = part.starts[first : first + len(which)]
        self._begin, self._end = int(self._starts[0]), int(part.starts[first + len(which)])
        made = self._of_each([len(effect.rows) for effect in self._effects])
        self._rows_at = np.cumsum(made) - made
        self._count = int(made.sum())
        sources = self._of_each([effect.iterator for effect in self._effects])
        self._iterators, self._iterator = self._carried(sources, self._from.iterator, 0)
        sources = self._of_each([effect.ready for effect in self._effects])
        self._readies, self._ready = self._carried(sources, self._from.ready, NO_QUEUE)

    def into(self, player: Player) -> None:
        """Tell what happens in them, and have the replay go on from there."""
        rows, named = self._rows()
        stretches, line = self._stretches()
        player.rows.append(rows)
        player.named.append(named)
        player.looks.append(self._looks())
        player.stretches.append(stretches)
        since = int(self._part.times[self._end - 1])
        point = Point(since, self._iterator, self._ready, line, self._from.number + self._count)
        self._replay.go_on(self._effects[self._which[-1]].after, point)

    def _of_each(self, values: list[int]) -> Ints:
        """Of each sequence what is known of its effect."""
        return np.array(values, np.int64)[self._which]

    def _carried(self, sources: Ints, first: int, none: int) -> tuple[Ints, int]:
        """What is so before each sequence, and after the last, where events tell of it."""
        told = np.where(sources >= 0, self._operands(self._starts + np.maximum(sources, 0)), none)
        last = np.maximum.accumulate(np.where(sources == CARRIED, -1, np.arange(len(sources))))
        after = np.where(last >= 0, told[last], first)
        return np.append(first, after[:-1]), int(after[-1])

    def _operands(self, events: Ints) -> Ints:
        return self._part.words[events] >> SHIFT

    def _told(self, source: int, words: Ints, before: Ints, none: int) -> Ints | int:
        """A number that an event told, or that was so before the sequence."""
        if source == CARRIED:
            return before
        return none if source == NOT_TOLD else words[source] >> SHIFT

    def _rows(self) -> tuple[Rows, Rows]:
        """The rows, and those of stretches that the program has named."""
        table = np.zeros(self._count, tables.ROW)
        spent = np.zeros((len(PHASES), self._count), np.int64)
        is_close = np.zeros(self._count, bool)
        named: list[tuple[Ints, Ints, Rows]] = []
        for number, effect in enumerate(self._effects):
            mine = np.flatnonzero(self._which == number)
            events = self._starts[mine] + np.arange(CARRIED, effect.length)[:, None]
            times, words = self._part.times[events], self._part.words[events[1:]]
            intervals = _intervals(effect, times, words)
            for at, made in enumerate(effect.rows):
                rows = self._rows_at[mine] + at
                self._fill(table, rows, made, mine, times, words)
                is_close[rows] = made.is_close
                for phase, total in made.spent:
                    spent[phase, rows] = total.of(intervals)
            self._keep_marks(effect, mine, times)
            named += self._named(effect, mine, intervals)
        self._keep_close(table, spent, np.flatnonzero(is_close)[-CLOSELY:])
        divided = np.flatnonzero((table["flags"] & NAP > 0) & (table["opened"] == BATCH))
        if len(divided):
            spent[:, divided] = _divided(spent[:, divided], self._replay.nap)
        table["seconds"] = spent.T * NANO
        return table, _in_order(named)

    def _fill(self, table: Rows, rows: Ints, made: RowMade, mine: Ints, times: Ints, words: Ints) -> None:
        """All of these rows but what was spent in them."""
        counted = sum(often * samples(words[event]) for event, often in made.samples.terms)
        ready = self._told(made.ready, words, self._readies[mine], NO_QUEUE)
        table["end"][rows] = times[made.end - CARRIED] * NANO
        table["iterator"][rows] = self._told(made.iterator, words, self._iterators[mine], 0)
        table["samples"][rows] = np.minimum(counted, tables.MOST_SAMPLES)
        table["ready"][rows] = np.minimum(ready, tables.MOST)
        table["backwards"][rows] = min(made.backwards, tables.MOST)
        table["steps"][rows] = min(made.steps, tables.MOST)
        for name in ("optimizers", "opened", "flags"):
            table[name][rows] = getattr(made, name)

    def _keep_marks(self, effect: Effect, mine: Ints, times: Ints) -> None:
        """The device's times of what was marked are not known yet."""
        for marked in effect.marked:
            rows = self._from.number + self._rows_at[mine] + marked.row
            for began, row in zip(times[marked.event - CARRIED].tolist(), rows.tolist(), strict=True):
                self._replay.unread[began] = (row, marked.phases)

    def _keep_close(self, table: Rows, spent: Ints, rows: Ints) -> None:
        """The next nap is divided by the last of them."""
        for row in rows.tolist():
            self._replay.closely.append(
                Row(int(table["opened"][row]), flags=int(table["flags"][row]), spent=spent[:, row].tolist())
            )

    def _named(self, effect: Effect, mine: Ints, intervals: Ints) -> list[tuple[Ints, Ints, Rows]]:
        """For each entry: of which sequences, its place among theirs, and the table."""
        found = []
        for place, made in enumerate(effect.named):
            nanoseconds = made.nanoseconds.of(intervals)
            table = np.zeros(len(mine), tables.NAMED_ROW)
            table["row"] = self._from.number + self._rows_at[mine] + made.row
            table["name"], table["phase"], table["calls"] = made.name, made.phase, made.calls
            table["seconds"] = nanoseconds * NANO
            is_told = (nanoseconds != 0) | (made.calls != 0)
            found.append((mine[is_told], np.full(int(is_told.sum()), place), table[is_told]))
        return found

    # -- looks and lines -----------------------------------------------------------------------------------------

    def _looks(self) -> Rows:
        events, looks = self._part.looks_between(self._begin, self._end)
        sequence = np.searchsorted(self._starts, events, "right") - 1
        early = self._before_leaves(events, looks[:, 0]) * (
            self._of_each([e.length for e in self._effects])[sequence] + 1
        )
        which, phase, iterator, _ = self._landed([effect.looks for effect in self._effects], events + early, sequence)
        table = np.zeros(len(which), tables.LOOK)
        table["time"], table["stack"], table["leaf"] = looks[which].T
        table["phase"], table["iterator"] = phase, iterator
        return table

    def _before_leaves(self, events: Ints, times: Ints) -> Ints:
        """Whether each moment lies before the part that the event after it takes of the interval."""
        words, ends = self._part.words[events], self._part.times[events]
        is_leaf = np.isin(words & wire.KIND, range(wire.LEAF, wire.LEAF + len(PHASES)))
        since = np.maximum(ends - (words >> SHIFT), self._part.times[events - 1])
        early: Ints = (is_leaf & (times <= since)).astype(np.int64)
        return early

    def _stretches(self) -> tuple[Rows, int]:
        """What passed since lines of the program's own code; the line of the last event."""
        events, places = self._part.lines_between(self._begin, self._end)
        line = 0
        if len(events) and events[-1] == self._end - 1:
            line, events, places = int(places[-1]), events[:-1], places[:-1]
        if self._from.line:
            events, places = np.append(self._begin + CARRIED, events), np.append(self._from.line, places)
        sequence = np.searchsorted(self._starts + CARRIED, events, "right") - 1
        which, _, iterator, at = self._landed([effect.lines for effect in self._effects], events, sequence)
        times = self._part.times
        table = np.zeros(len(which), tables.STRETCH)
        table["time"], table["nanoseconds"] = times[at], times[at] - times[at - 1]
        table["place"], table["iterator"] = places[which], iterator
        return table, line

    def _landed(self, landings: list[Landing], events: Ints, sequence: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Of what falls on these events, in the order in which it is told: its number, phase, iterator and event."""
        sizes = np.array([len(landing.order) for landing in landings])
        at = (np.cumsum(sizes) - sizes)[self._which[sequence]] + events - self._starts[sequence] - CARRIED
        order, phase, source, event = (
            np.concatenate([getattr(landing, name) for landing in landings])[at] for name in Landing.__struct_fields__
        )
        told = np.where(source >= 0, self._operands(self._starts[sequence] + np.maximum(source, 0)), 0)
        iterator = np.where(source == CARRIED, self._iterators[sequence], told)
        ordered = np.lexsort((order, sequence))
        ordered = ordered[order[ordered] != NOT_TOLD]
        return ordered, phase[ordered], iterator[ordered], (self._starts[sequence] + event)[ordered]


def _intervals(effect: Effect, times: Ints, words: Ints) -> Ints:
    """Between each two events; where the second takes a part of it, first what is left, then that."""
    passed = np.diff(times, axis=0)
    if not effect.leaves:
        return passed
    lines: list[Ints] = []
    for event, between in enumerate(passed):
        if event in effect.leaves:
            taken = np.clip(words[event] >> SHIFT, 0, between)
            lines += [between - taken, taken]
        else:
            lines.append(between)
    return np.stack(lines)


def _divided(spent: Ints, nap: Nap) -> Ints:
    """What `Nap.divide` makes of rows."""
    divided = np.minimum(spent[OTHER], nap.most)
    spent[OTHER] -= divided
    for rows, shares in ((divided <= nap.long, nap.shares), (divided > nap.long, nap.shares_if_long)):
        for phase, share in shares:
            spent[phase, rows] += np.rint(divided[rows] * share).astype(np.int64)
    return spent


def _in_order(named: list[tuple[Ints, Ints, Rows]]) -> Rows:
    """All entries, by the sequences that they are of."""
    if not named:
        return np.zeros(0, tables.NAMED_ROW)
    sequences, places, entries = (np.concatenate(column) for column in zip(*named, strict=True))
    ordered: Rows = entries[np.lexsort((places, sequences))]
    return ordered
