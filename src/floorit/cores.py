"""Work that is spread over the cores, where there is much of it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

MOST = 4  # processes: each takes some memory
WORTH = 4  # pieces of work: fewer are done by the time that the processes have started

_Work = TypeVar("_Work")
_Done = TypeVar("_Done")


def at_hand() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def spread(do: Callable[[_Work], _Done], work: Iterable[_Work]) -> Iterator[_Done]:
    """As `map`, by several processes where the work has several pieces and the machine several cores."""
    pieces = list(work)
    processes = min(at_hand(), MOST)
    if len(pieces) < WORTH or processes < 2:
        yield from map(do, pieces)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of numpy's threads
    with ProcessPoolExecutor(processes, context) as pool:
        yield from pool.map(do, pieces)
