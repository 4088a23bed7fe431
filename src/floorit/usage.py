"""What the loader's workers use of the machine, read from outside: cores, waiting for one, bytes from disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from floorit.events import Usage

EVERY = 1.0  # seconds between two looks
MOST = 256  # workers: an epoch may start new ones
_PROC = Path("/proc")
_USER_TICKS, _SYSTEM_TICKS, _THREADS = 11, 12, 17  # in /proc/PID/stat, after the name, which may have spaces


class Watch:
    """Keeps the first look at each worker, and the last."""

    def __init__(self) -> None:
        self._looked = 0.0
        self._first: dict[int, Usage] = {}
        self._last: dict[int, Usage] = {}

    def look(self, pids: Callable[[], tuple[list[int], list[int]]]) -> None:
        """One look, if it is time; `pids` are of the processes that train, and of their loaders' workers."""
        now = time.monotonic()
        if now - self._looked < EVERY:
            return
        self._looked = now
        for pid in pids()[1]:
            if pid in self._first or len(self._first) < MOST:
                seen = _read(pid)
                if seen is not None:
                    self._first.setdefault(pid, seen)
                    self._last[pid] = seen

    def sum_up(self) -> list[Usage]:
        """What each used between the two looks."""
        pairs = ((self._first[pid], last) for pid, last in self._last.items())
        return [_difference(first, last) for first, last in pairs if last.end > first.end]


def _difference(first: Usage, last: Usage) -> Usage:
    return Usage(
        pid=last.pid,
        begin=first.end,
        end=last.end,
        cpu=last.cpu - first.cpu,
        waited=last.waited - first.waited,
        read=last.read - first.read,
        from_disk=last.from_disk - first.from_disk,
        cpu_of_all=last.cpu_of_all - first.cpu_of_all,
        threads=last.threads,
    )


def _read(pid: int) -> Usage | None:
    """Its counters since it began; `cpu` and `waited` of its first thread, which makes the batches.

    None where it is gone, or not told.
    """
    try:
        now = time.perf_counter()  # the clock that the record uses
        cpu, waited, *_ = (_PROC / str(pid) / "schedstat").read_text().split()
        pairs = (line.split(": ") for line in (_PROC / str(pid) / "io").read_text().splitlines())
        counted = {name: int(value) for name, value in pairs}
        stat = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return Usage(
            pid=pid,
            begin=0.0,
            end=now,
            cpu=int(cpu) * 1e-9,
            waited=int(waited) * 1e-9,
            read=counted["rchar"],
            from_disk=counted["read_bytes"],
            cpu_of_all=(int(stat[_USER_TICKS]) + int(stat[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK"),
            threads=int(stat[_THREADS]),
        )
    except (OSError, ValueError, KeyError, IndexError):
        return None
