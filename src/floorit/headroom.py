"""How much memory the machine had left while a program ran, seen from outside of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from floorit.events import Headroom

EVERY = 1.0  # seconds between two looks
SHARED = "/dev/shm"
_CGROUPS = Path("/sys/fs/cgroup")
# (controller in /proc/self/cgroup, where its files are, the file that counts kills)
_COUNTERS = (("", "", "memory.events"), ("memory", "memory", "memory.oom_control"))


class Watch:
    """Looks at the machine every now and then."""

    def __init__(self) -> None:
        self._looked = 0.0
        self._killed_before = _kills()
        self._seen = Headroom()

    def look(self, pids: Callable[[], tuple[list[int], list[int]]]) -> None:
        """One look, if it is time; `pids` are of the processes that train, and of their loaders' workers."""
        now = time.monotonic()
        if now - self._looked < EVERY:
            return
        self._looked = now
        training, workers = pids()
        shared = _shared()
        seen = self._seen
        memory = psutil.virtual_memory()
        self._seen = Headroom(
            memory=memory.total,
            available_least=_least(seen.available_least, memory.available),
            shared_size=shared[0] if shared else None,
            shared_free_least=_least(seen.shared_free_least, shared[1] if shared else None),
            training_most=_most(seen.training_most, _resident(training)),
            workers_most=_most(seen.workers_most, _resident(workers)),
        )

    def sum_up(self) -> Headroom:
        """What was seen until now."""
        before = self._killed_before
        risen = [count - before[path] for path, count in _kills().items() if path in before]
        return msgspec.structs.replace(self._seen, kills=max(risen, default=None))


def _least(before: int | None, now: int | None) -> int | None:
    return min((value for value in (before, now) if value is not None), default=None)


def _most(before: int | None, now: int | None) -> int | None:
    return max((value for value in (before, now) if value is not None), default=None)


def _resident(pids: Iterable[int]) -> int | None:
    sizes = []
    for pid in pids:
        with suppress(psutil.Error):  # it may be gone by now
            sizes.append(int(psutil.Process(pid).memory_info().rss))
    return sum(sizes) or None  # a process that has ended has none


def _shared() -> tuple[int, int] | None:
    try:
        usage = shutil.disk_usage(SHARED)
    except OSError:
        return None
    return usage.total, usage.free


def _kills() -> dict[Path, int]:
    """Kills so far, by each counter that can be read: of our cgroup, and of the whole machine."""
    counts = {path: _count(path) for path in (*_cgroup_counters(), Path("/proc/vmstat"))}
    return {path: count for path, count in counts.items() if count is not None}


def _cgroup_counters() -> list[Path]:
    """The files in which our cgroup counts, as they are named outside and inside of a container."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, own = line.split(":", 2)
        for controller, folder, name in _COUNTERS:
            if controller in controllers.split(","):
                found += [_CGROUPS / folder / own.lstrip("/") / name, _CGROUPS / folder / name]
    return found


def _count(path: Path) -> int | None:
    try:
        words = (line.split() for line in path.read_text().splitlines())
        return next((int(pair[1]) for pair in words if len(pair) == 2 and pair[0] == "oom_kill"), None)
    except (OSError, ValueError):
        return None
