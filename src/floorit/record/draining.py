"""The training loader by itself: how fast it gives batches where nothing trains, with several numbers of workers.

In a run of its own, which ends when that is known: what it draws from the program's random numbers, and what it leaves
behind in the dataset, nobody will meet.
"""

import copy
import os
from time import perf_counter

from .wire import DRAINED as NAME

_USUAL_PREFETCH = 2  # torch's own, where none is asked for


def install(session, plan):
    """Hook the iterators of torch's DataLoader. `plan` is what wire.DRAIN asks for."""
    from torch.utils.data import dataloader as torchs

    drain = _Drain(session, plan, torchs)
    session.hook(NAME, torchs._BaseDataLoaderIter.__init__, drain.begin, names=("self", "loader"))


class _Drain:
    """One loader, drained as the program first asks it for batches."""

    def __init__(self, session, plan, torchs):
        self._session = session
        self._number, self._counts = plan["loader"], plan["workers"]
        self._seconds, self._longest = plan["seconds"], plan["longest"]
        self._torchs = torchs
        self._has_begun = False

    def begin(self, iterator, loader):
        session = self._session
        if self._has_begun or session.is_worker or session.number_of_loader(loader) != self._number:
            return
        self._has_begun = True
        for count in self._counts:
            try:
                batches, seconds = self._drained(loader, count)
                session.writer.note(NAME, workers=count, batches=batches, seconds=seconds)
            except Exception as error:
                session.writer.note(NAME, workers=count, reason=repr(error))
        session.close()
        os._exit(0)

    def _drained(self, loader, count):
        """Batches, and the seconds that they took, once each worker has made one."""
        torchs, like = self._torchs, _with_workers(loader, count)
        kind = torchs._MultiProcessingDataLoaderIter if count else torchs._SingleProcessDataLoaderIter
        batches, seconds, deadline = 0, 0.0, perf_counter() + self._longest
        while seconds < self._seconds and perf_counter() < deadline:
            iterator = kind(like)
            try:
                more, passed = _counted(iterator, max(count, 1), self._seconds - seconds, deadline)
            finally:
                if count:
                    iterator._shutdown_workers()
            if not more:
                break
            batches, seconds = batches + more, seconds + passed
        if not batches:
            raise ValueError("no batch was seen after the first of each worker")
        return batches, seconds


def _counted(iterator, first, enough, deadline):
    """How many batches came after the first ones, and in how many seconds, until the pass or the time is over."""
    since, now, count = None, None, 0
    for number, _ in enumerate(iterator, 1):
        now = perf_counter()
        if number == first:
            since = now
        count = max(number - first, 0)
        if now > deadline or (count >= first and now - since >= enough):
            break
    return (count, now - since) if count else (0, 0.0)


def _with_workers(loader, count):
    """A loader of the same dataset and sampler; the program's own stays as it is."""
    like = copy.copy(loader)
    prefetch = loader.prefetch_factor or _USUAL_PREFETCH
    changed = {
        "num_workers": count,
        "prefetch_factor": prefetch if count else None,
        "persistent_workers": False,
        "timeout": loader.timeout if count else 0,
        "_iterator": None,
    }
    for name, value in changed.items():
        object.__setattr__(like, name, value)
    return like
