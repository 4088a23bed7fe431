"""Where the program was in calls that waited for the GPU, by the looks at the stack that fell into some of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from floorit.analyse.host import Wait
from floorit.events import Place

Looks = list[tuple[int, Place | None]]  # when, and where the program was; in order


class Part(msgspec.Struct, frozen=True):
    """Waits in one phase that were at one place, as far as is known: of some it is known how many, and not which."""

    place: Place | None
    phase: str
    call: str
    calls: float
    seconds: float


def find(steps: list[list[Wait]], looks: Looks) -> list[Part]:
    """All waits of some steps; `place` is None where nothing is known.

    One that no look fell into is where the same one of other steps was, if all looks at that agree. Into short waits a
    look falls once in so many: one that was looked at stands for others of its length and phase.
    """
    turns = [turn for step in steps for turn in _turns(step)]
    seen = [_place_in(wait, looks) for wait, _ in turns]
    usual: dict[_Turn, set[Place]] = defaultdict(set)
    for (_, turn), place in zip(turns, seen, strict=True):
        if place is not None:
            usual[turn].add(place)
    phases: dict[str, _Phase] = defaultdict(lambda: _Phase(_between(looks)))
    for (wait, turn), place in zip(turns, seen, strict=True):
        there = usual[turn]
        known = next(iter(there)) if len(there) == 1 else None
        phases[wait.phase].add(wait, place or known, is_seen=place is not None)
    return [part for phase in phases.values() for part in phase.parts()]


_Turn = tuple[str, int, int]  # phase, how many waits a step has in it, which of them


def _turns(step: list[Wait]) -> Iterable[tuple[Wait, _Turn]]:
    """Waits of a step, and which of its phase's each is."""
    by_phase: dict[str, list[Wait]] = defaultdict(list)
    for wait in sorted(step, key=lambda wait: wait.begin):
        by_phase[wait.phase].append(wait)
    for phase, waits in by_phase.items():
        yield from ((wait, (phase, len(waits), number)) for number, wait in enumerate(waits))


def _place_in(wait: Wait, looks: Looks) -> Place | None:
    at = bisect_left(looks, wait.begin, key=lambda look: look[0])
    return looks[at][1] if at < len(looks) and looks[at][0] < wait.end else None


def _between(looks: Looks) -> float:
    """Seconds from one look to the next, on average."""
    return (looks[-1][0] - looks[0][0]) / (len(looks) - 1) * 1e-9 if looks[1:] else 0.0


class _Phase:
    """The waits of one phase."""

    def __init__(self, between: float) -> None:
        self._between = between
        self._known: list[Part] = []
        self._unknown: list[Wait] = []
        # By place: how many more there should be than are known, by those that were looked at, and for how long.
        self._calls: dict[tuple[Place, str], float] = defaultdict(float)
        self._seconds: dict[tuple[Place, str], float] = defaultdict(float)

    def add(self, wait: Wait, place: Place | None, *, is_seen: bool) -> None:
        if place is None:
            self._unknown.append(wait)
            return
        self._known.append(Part(place, wait.phase, wait.call, 1.0, wait.seconds))
        more = max(self._between / wait.seconds - 1, 0.0) if is_seen else -1.0
        self._calls[place, wait.call] += more
        self._seconds[place, wait.call] += more * wait.seconds

    def parts(self) -> list[Part]:
        if not self._unknown:
            return self._known
        phase, spent = self._unknown[0].phase, sum(wait.seconds for wait in self._unknown)
        calls, seconds = _within(len(self._unknown), self._calls), _within(spent, self._seconds)
        guessed = [Part(place, phase, call, calls[place, call], seconds[place, call]) for place, call in calls]
        rest = len(self._unknown) - sum(calls.values()), spent - sum(seconds.values())
        return [*self._known, *guessed, Part(None, phase, "", *rest)]


def _within(most: float, wanted: dict[tuple[Place, str], float]) -> dict[tuple[Place, str], float]:
    """What is wanted, and no more in all than there is."""
    asked = {key: max(value, 0.0) for key, value in wanted.items()}
    part = min(most / sum(asked.values()), 1.0) if any(asked.values()) else 0.0
    return {key: value * part for key, value in asked.items()}
