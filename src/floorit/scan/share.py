"""Shares work on many things out among processes that have all that the first one knows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")
_PAYS = 40  # things, from which on processes save more time than it takes to start them
_AT_ONCE = 8  # handed to a process
_work: Callable[[int], Any] | None = None  # of the processes that are forked while it is set


def shared(work: Callable[[_Thing], _Result], things: Sequence[_Thing], processes: int) -> list[_Result]:
    """The result for each thing, in their order.

    Forked processes are not handed what the work needs, which would take longer than the work.
    """
    if processes < 2 or len(things) < _PAYS or sys.platform != "linux":
        return list(map(work, things))
    global _work
    _work = lambda number: work(things[number])  # noqa: E731
    try:
        with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
            return list(pool.map(_one, range(len(things)), chunksize=_AT_ONCE))
    except BrokenProcessPool:  # one was killed: short of memory, as likely as not
        return list(map(work, things))
    finally:
        _work = None


def _one(number: int) -> Any:
    assert _work is not None
    return _work(number)
