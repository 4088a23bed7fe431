"""What became of the overrides that a run was asked for, over all of its processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from floorit.events import Place, Process
from floorit.record.wire import FAILED_OVERRIDE, IN_FORCE, NOT_MET

_WORST_FIRST = (FAILED_OVERRIDE, IN_FORCE, NOT_MET)


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """One fix, applied from outside, or by a setting of the program's own."""

    code: str
    value: bool | int | float | str | None
    state: str  # in force; not met: the program never did what it would change; failed
    reason: str | None  # why it failed or was not met, where that is known; or what else is to be known of it
    acted: int = 0  # how often it changed something; what a process that was killed did last is not in it
    opposed: bool = False  # whether the program itself asks for something else
    asked: Any = None  # the value it asks for
    asked_at: Place | None = None


def find(fixes: dict[str, Any], processes: Iterable[Process], workers: Iterable[Process]) -> list[Override]:
    """In the order in which they were asked for. `workers` are the records that loader workers share."""
    notes: list[dict[str, Any]] = []
    for process in processes:
        notes += {note["code"]: note for note in process.overrides}.values()
    for shared in workers:
        notes += {(note["pid"], note["code"]): note for note in shared.overrides}.values()
    return [_merged(code, value, [n for n in notes if n["code"] == code]) for code, value in fixes.items()]


def _merged(code: str, value: Any, notes: list[dict[str, Any]]) -> Override:
    state = next((state for state in _WORST_FIRST if any(n["state"] == state for n in notes)), NOT_MET)
    opposed = next((note for note in notes if note["opposed"]), None)
    place = opposed["place"] if opposed is not None else None
    return Override(
        code=code,
        value=value,
        state=state,
        reason=next((n["reason"] for n in notes if n["state"] == state and n["reason"]), None),
        acted=sum(int(n["acted"]) for n in notes),
        opposed=opposed is not None,
        asked=opposed["asked"] if opposed is not None else None,
        asked_at=Place(place[0], place[1], place[2], "user") if place else None,
    )
