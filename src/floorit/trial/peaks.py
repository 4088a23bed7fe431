"""What a trial takes of the host's memory and of /dev/shm at the most, seen from outside while it runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

EVERY = 0.5  # seconds between two looks
EVERY_AT_WORKERS = 3.0  # a look at one takes 5 ms
_CGROUP = Path("/sys/fs/cgroup")
SHARED = "/dev/shm"


class Watch:
    """Looks every now and then. Bytes; None: nothing could be read."""

    def __init__(self) -> None:
        self._looked = self._looked_at_workers = 0.0
        self._shared_before = _shared_used()
        self._training: int | None = None
        self._workers: int | None = None
        self.shared: int | None = None

    @property
    def host(self) -> int | None:
        """Resident in the processes that train, by the kernel's own count of the most; with it what is the workers'."""
        return None if self._training is None else self._training + (self._workers or 0)

    def look(self, pids: Callable[[], tuple[list[int], list[int]]]) -> None:
        """One look, if it is time; `pids` are of the processes that train, and of their loaders' workers."""
        now = time.monotonic()
        if now - self._looked < EVERY:
            return
        self._looked = now
        training, workers = pids()
        self._training = _most(self._training, _sum(_most_resident(pid) for pid in training))
        if workers and now - self._looked_at_workers >= EVERY_AT_WORKERS:
            self._looked_at_workers = now
            self._workers = _most(self._workers, _sum(_own(pid) for pid in workers))
        used = _shared_used()
        if used is not None and self._shared_before is not None:
            self.shared = _most(self.shared, max(used - self._shared_before, 0))


def _most_resident(pid: int) -> int | None:
    """VmHWM: what was resident at the most until now."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it may be gone by now; on macOS there is no such file
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)


def _own(pid: int) -> int | None:
    """What a process does not share: workers are forked, and share much with their parent."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_full_info().uss)
    return None


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def _most(before: int | None, now: int | None) -> int | None:
    return max((value for value in (before, now) if value is not None), default=None)


def free_memory() -> int:
    """Bytes of the host that a program may still have, by the machine's own count and the cgroup's."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):  # where there is no limit
        limit, used = (int((_CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        read = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, limit - used + int(read.get("inactive_file", 0)))  # files that were read go for it
    return max(free, 0)


def free_shared() -> int | None:
    """Bytes of /dev/shm, through which workers hand batches on."""
    try:
        return shutil.disk_usage(SHARED).free
    except OSError:
        return None


def _shared_used() -> int | None:
    try:
        return shutil.disk_usage(SHARED).used
    except OSError:
        return None
