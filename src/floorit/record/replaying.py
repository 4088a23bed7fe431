"""The override `data-replay`: the first batches are fetched and then handed out again, so that data costs nothing.

The program cannot tell by counting. Each index is still taken from the sampler, when and as often as ever, so a pass
has as many batches as before; a batch of a size that was not kept (the last of a pass) is really fetched. Workers get
no work beyond the batches that are kept. Loaders that the first run found to evaluate are left alone.
"""

import copy
import os
from collections import deque
from time import perf_counter
from types import FunctionType

from .known import Known
from .memory import free_memory
from .patch import Instead
from .wire import DATA_REPLAY as NAME

MOST = 8  # batches kept, so that one that is unlike the others does not stand for all
MOST_SIZES = 8  # sizes of batches kept; beyond, the nearest stands for the others
MEMORY_SHARE = 0.1  # of the host memory that is free, at most, for what is kept
SHM_SHARE = 0.25  # of the free part of /dev/shm, where workers put batches
_UNKNOWABLE = (list, tuple, dict, range)  # datasets that cannot be followed by their identity
_DEPTH = 4  # of what a batch is made of: how far it is looked into


def install(session, plan):
    """Hook the iterators of torch's DataLoader. `plan` is what wire.REPLAY asks for."""
    from torch.utils.data import dataloader as torchs

    replayer = _Replayer(session, plan)
    base, single, several = (
        torchs._BaseDataLoaderIter,
        torchs._SingleProcessDataLoaderIter,
        torchs._MultiProcessingDataLoaderIter,
    )
    session.hook(NAME, base.__init__, replayer.begin, names=("self", "loader"))
    session.hook(NAME, several._reset, replayer.begin_again, names=("self",))
    session.hook(
        NAME, base._next_index, replayer.next_index, result=_Reading.took_index, names=("self",), replaces=True
    )
    session.hook(NAME, several._try_put_index, replayer.put_index, names=("self",), replaces=True)
    for kind in (single, several):
        asks = {"result": _Reading.fetched, "names": ("self",), "replaces": True}
        session.hook(NAME, kind._next_data, replayer.next_data, **asks)


class _Replayer:
    """All loaders of the process."""

    def __init__(self, session, plan):
        self._session = session
        self._spared = frozenset(plan["spared"])
        self._lengths = plan["lengths"]
        self._kept = Known()  # of a dataset, or of a loader: what loaders of it have in common -> _Kept
        self._readings = Known()  # of an iterator

    def begin(self, iterator, loader):
        number = self._session.number_of_loader(loader)
        if number in self._spared:
            return
        self._readings.learn(iterator, _Reading(self._kept_for(loader, number)))

    def _kept_for(self, loader, number):
        """Programs make a loader anew for each pass: it goes on with what was kept for one like it."""
        owner = loader if type(loader.dataset) in _UNKNOWABLE else loader.dataset
        alike = self._kept.get(id(owner))
        if alike is None:
            alike = self._kept.learn(owner, {})
        collate = loader.collate_fn
        made_by = collate.__code__ if type(collate) is FunctionType else id(collate)
        key = (made_by, loader.batch_size, loader.num_workers > 0, type(loader.batch_sampler))
        if key not in alike:
            length = self._lengths.get(str(number)) if _is_endless(loader) else None
            alike[key] = _Kept(self._session.writer, number, length, loader.num_workers > 0)
        return alike[key]

    def begin_again(self, iterator):
        reading = self._readings.get(id(iterator))
        if reading is not None:
            reading.begin()

    def next_index(self, iterator):
        reading = self._readings.get(id(iterator))
        return None if reading is None else reading.next_index()

    def put_index(self, iterator):
        reading = self._readings.get(id(iterator))
        return None if reading is None else reading.put_index(iterator)

    def next_data(self, iterator):
        reading = self._readings.get(id(iterator))
        return None if reading is None else reading.next_data(iterator)


class _Kept:
    """The batches of one loader, by how many samples they were asked to hold."""

    def __init__(self, writer, number, length, has_workers):
        self._writer = writer
        self._number = number
        self.length = length  # batches of a pass, where no sampler ends it
        self._has_workers = has_workers
        self._by_size = {}
        self._turns = {}
        self._wanted = MOST
        self.count = 0
        self._told = False

    def wants(self, pending=0):
        """Whether more are wanted than those that are being fetched."""
        return self.count + pending < self._wanted

    def keep(self, size, batch):
        """One more, if it is wanted."""
        if size in self._by_size and not self.wants():
            return
        if not self.count:
            self._wanted = _affordable(batch, self._has_workers)
        self._by_size.setdefault(size, []).append(_copied(batch, 0))
        self.count += 1

    def next(self, size):
        """The next in turn, as Instead; None if one of this size was never seen."""
        if size not in self._by_size:
            if len(self._by_size) < MOST_SIZES:
                return None
            size = min(self._by_size, key=lambda known: abs(known - size))
        if not self._told:
            self._told = True
            self._writer.note("replay", at=perf_counter(), loader=self._number, kept=self.count)
        batches, turn = self._by_size[size], self._turns.get(size, 0)
        self._turns[size] = turn + 1
        return Instead(_copied(batches[turn % len(batches)], 0))


class _Reading:
    """One iterator of a loader."""

    def __init__(self, kept):
        self._kept = kept
        self.begin()

    def begin(self):
        """A pass begins."""
        self._ahead = deque()  # indices taken from the sampler that no worker gets
        self._sizes = deque()  # of the batches that are really being fetched
        self._given_back = None  # an index that is to be really fetched
        self._handed = 0  # batches of this pass

    def next_index(self):
        if self._given_back is None:
            return self
        (index,), self._given_back = self._given_back, None
        self._sizes.append(_size(index))
        return Instead(index)

    def took_index(self, index):
        self._sizes.append(_size(index))

    def put_index(self, iterator):
        """A worker is to get an index: only what is to be kept is really fetched."""
        if self._given_back is not None or self._kept.wants(_pending(iterator)):
            return None
        self._take_ahead(iterator)
        return Instead(None)

    def next_data(self, iterator):
        """A batch is asked for: one of those kept, or this reading, which hears of what is fetched."""
        kept = self._kept
        has_workers = hasattr(iterator, "_task_info")
        if kept.wants() or (has_workers and _pending(iterator)):
            return self
        if kept.length is not None and self._handed >= kept.length:
            self._ahead.clear()
            iterator._sampler_iter = iter(())  # it ends as if the dataset had
            return None
        if not has_workers:
            self._take_ahead(iterator)
        if not self._ahead:
            return None  # the sampler has ended: the iterator will find out by itself
        index = self._ahead.popleft()
        replayed = kept.next(_size(index))
        if replayed is None:
            self._given_back = (index,)
            if has_workers:
                iterator._try_put_index()
            return self
        if has_workers:
            self._take_ahead(iterator)
        self._handed += 1
        return replayed

    def fetched(self, batch):
        self._handed += 1
        self._kept.keep(self._sizes.popleft() if self._sizes else 0, batch)

    def _take_ahead(self, iterator):
        try:
            self._ahead.append(next(iterator._sampler_iter))
        except StopIteration:
            pass


def _pending(iterator):
    """Batches that workers have been asked for and that will come: one whose data has ended answers no more."""
    active = iterator._workers_status
    return sum(1 for task in iterator._task_info.values() if len(task) > 1 or active[task[0]])


def _is_endless(loader):
    """Whether the dataset alone knows where a pass ends."""
    from torch.utils.data import IterableDataset

    return isinstance(loader.dataset, IterableDataset)


def _size(index):
    """How many samples are asked for."""
    return len(index) if isinstance(index, (list, tuple)) else 1


def _copied(value, depth):
    """The same tensors in containers of their own: programs put other things into those they were given."""
    kind = type(value)
    if depth >= _DEPTH:
        return value
    if kind is dict:
        return {key: _copied(item, depth + 1) for key, item in value.items()}
    if kind in (list, tuple):
        return kind([_copied(item, depth + 1) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[_copied(item, depth + 1) for item in value])
    if hasattr(value, "nbytes") or not hasattr(value, "__dict__"):
        return value  # a tensor, an array, a number, a string
    try:
        return copy.copy(value)
    except Exception:
        return value


def _affordable(batch, has_workers):
    """How many batches like this one may be kept."""
    size = max(_bytes(batch, 0), 1)
    room = MEMORY_SHARE * free_memory()
    if has_workers:
        room = min(room, SHM_SHARE * _free_shm())
    return max(1, min(MOST, int(room / size)))


def _bytes(value, depth):
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth >= _DEPTH:
        return 0
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, (list, tuple)):
        inner = value
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    return sum(_bytes(item, depth + 1) for item in inner)


def _free_shm():
    try:
        room = os.statvfs("/dev/shm")
        return room.f_bavail * room.f_frsize
    except OSError:
        return float("inf")
