"""Shares work on many things out among processes that have all that the first one knows."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")
_PAYS = 40  # things, from which on another process saves more time than it takes to start it
_AT_ONCE = 8  # that are taken at least
_TICKET = 4  # bytes: the number of the first of them
_MOST_TICKETS = 8_000  # so that a pipe holds them all


def shared(work: Callable[[_Thing], _Result], things: Sequence[_Thing], processes: int) -> list[_Result]:
    """The result for each thing, in their order.

    Forked processes are not handed what the work needs, which would take longer than the work. All of them, the first
    too, draw tickets from one pipe until none is left. What one that was killed has not told is done by the first.
    """
    if processes < 2 or len(things) < _PAYS or sys.platform != "linux":
        return list(map(work, things))
    numbers, at_once = range(len(things)), max(_AT_ONCE, len(things) // _MOST_TICKETS + 1)
    tickets = _tickets(numbers[::at_once])

    def part() -> dict[int, _Result]:
        return {n: work(things[n]) for first in _drawn(tickets) for n in numbers[first : first + at_once]}

    others = [_forked(part) for _ in range(processes - 1)]
    done = part()
    for pid, answer in others:
        done.update(_answer(pid, answer))
    os.close(tickets)
    return [done[number] if number in done else work(thing) for number, thing in enumerate(things)]


def _tickets(numbers: Sequence[int]) -> int:
    """A pipe with all of them in it, to read from."""
    read, write = os.pipe()
    for number in numbers:
        os.write(write, number.to_bytes(_TICKET, "little"))
    os.close(write)
    return read


def _drawn(tickets: int) -> Iterator[int]:
    while ticket := os.read(tickets, _TICKET):  # whole ones, as they are shorter than what a pipe takes at once
        yield int.from_bytes(ticket, "little")


def _forked(part: Callable[[], Any]) -> tuple[int, int]:
    """A process that does its part: which it is, and a pipe to read from what has come of it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _tell(part, write)
    os.close(write)
    return pid, read


def _tell(part: Callable[[], Any], write: int) -> NoReturn:
    """Of a forked process all that it does; it leaves what it shares with the first one alone."""
    try:
        with open(write, "wb") as pipe:
            pickle.dump(part(), pipe)
    finally:
        os._exit(0)


def _answer(pid: int, read: int) -> Any:
    """What a process has told; nothing where it was killed: short of memory, as likely as not."""
    with open(read, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    with suppress(EOFError, pickle.UnpicklingError):
        return pickle.loads(told)
    return {}
