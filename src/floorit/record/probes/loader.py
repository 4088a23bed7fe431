"""Batches: when one is asked for, how long it takes, how large it is, how many wait."""

import weakref
from threading import get_ident
from time import perf_counter_ns

from ..sampler import caller
from ..wire import EPOCH_GAP, IN, NEXT_FRESH_IN, NEXT_IN, NEXT_OUT, OUT, READY, SHIFT

NAME = "data loader"
SOME = 7  # of the batches, every eighth: how full the queue is, and what a batch made in this process costs


def install(session):
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    batches = _Batches(session)
    session.count_waiting = batches.count_waiting
    begins = (batches.enter_iter, batches.leave_iter, batches.made_iter)
    session.hook(NAME, DataLoader.__iter__, *begins, names=("self",))
    asks = (batches.enter_next, batches.got_none, batches.got)
    session.hook(NAME, _BaseDataLoaderIter.__next__, *asks, result_is_last=True, names=("self",))


class _Loader:
    """What is known of one DataLoader."""

    __slots__ = ("batch_size", "by_length", "number", "workers")

    def __init__(self, number, loader):
        self.number = number
        self.workers = loader.num_workers
        self.batch_size = loader.batch_size
        self.by_length = None  # whether samples are counted by a list's length; not known before the first batch


class _Pass:
    """One pass over a loader."""

    __slots__ = ("has_queue", "iterator", "loader", "number", "word")

    def __init__(self, number, loader, iterator):
        self.number = number
        self.loader = loader
        self.iterator = weakref.ref(iterator)
        self.has_queue = loader is not None and loader.workers > 0
        self.word = number << SHIFT | (NEXT_FRESH_IN if self.has_queue else NEXT_IN)


class _Batches:
    """Each batch that the program asks for."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._loaders = weakref.WeakKeyDictionary()
        self._passes = {}  # id of the iterator -> _Pass
        self._loader_count = self._pass_count = 0
        self._queue = None  # weak reference to the iterator that was last asked how many batches wait

    def enter_iter(self, loader):
        session, log = self._session, self._log
        if not session.mine():
            return None
        if session.unsettled:
            session.settle()
        known = self._describe(loader)
        log.extend((log.now(), IN + EPOCH_GAP))
        return known

    def made_iter(self, known, iterator):
        self._begin_pass(known, iterator)

    def leave_iter(self, _):
        log = self._log
        log.extend((log.now(), OUT + EPOCH_GAP))

    def enter_next(self, iterator):
        session, log = self._session, self._log
        if get_ident() != log.thread:
            return self._note_elsewhere(iterator)
        if session.unsettled:
            session.settle()
        this = self._passes.get(id(iterator))
        if this is None or this.iterator() is not iterator:
            this = self._begin_pass(None, iterator)
        some = not log.batches & SOME
        session.time_fetches[0] = some
        if some and this.has_queue:
            self._queue = this.iterator
            log.extend((perf_counter_ns(), _ready(iterator) << SHIFT | READY))
        word, this.word = this.word, this.number << SHIFT | NEXT_IN
        log.batches += 1
        log.batch_came = log.border_came = True
        if log.attend is None:
            log.extend((log.now(), word))
        else:
            log.attend(word)
        return this

    def count_waiting(self):
        """How many batches wait to be taken; 0 where there is no queue."""
        iterator = self._queue() if self._queue is not None else None
        return 0 if iterator is None else _ready(iterator)

    def got(self, this, batch):
        log, loader = self._log, this.loader
        shape = None
        if type(batch) is list and loader is not None and loader.by_length is False:
            shape = getattr(batch[0], "shape", None) if batch else None
        samples = shape[0] if shape else _samples(batch, loader)
        log.extend((log.now(), (1 + samples) << SHIFT | NEXT_OUT))

    def got_none(self, _):
        log = self._log
        log.extend((log.now(), NEXT_OUT))

    def _describe(self, loader):
        known = self._loaders.get(loader)
        if known is None:
            self._loader_count += 1
            known = self._loaders[loader] = _Loader(self._loader_count, loader)
            self._session.writer.note("loader", id=known.number, **_facts(loader))
        return known

    def _begin_pass(self, loader, iterator):
        passes = self._passes
        for key in [key for key, old in passes.items() if old.iterator() is None]:
            del passes[key]
        self._pass_count += 1
        made = passes[id(iterator)] = _Pass(self._pass_count, loader, iterator)
        pids = [process.pid for process in getattr(iterator, "_workers", ())]
        self._session.writer.note("iterator", id=made.number, loader=loader.number if loader else 0, pids=pids)
        return made

    def _note_elsewhere(self, iterator):
        if not self._log.backwards:  # that thread may turn out to be the one that trains
            this = self._passes.get(id(iterator)) or self._begin_pass(None, iterator)
            self._session.elsewhere[get_ident()] = this.number


def _facts(loader):
    frame, _ = caller(3)
    dataset = type(loader.dataset)
    sampler = type(loader.sampler if loader.batch_sampler is None else loader.batch_sampler)
    return {
        "workers": loader.num_workers,
        "batch_size": loader.batch_size,
        "prefetch": loader.prefetch_factor,
        "persistent": loader.persistent_workers,
        "pin": loader.pin_memory,
        "dataset": "%s.%s" % (dataset.__module__, dataset.__qualname__),
        # Asking a sampler of the user's own could run code that would not have run.
        "length": len(loader) if sampler.__module__.startswith("torch.") and _sized(loader) else None,
        "file": frame.f_code.co_filename if frame else None,
        "line": frame.f_lineno if frame else None,
    }


def _sized(loader):
    """Whether the length comes from torch's own samplers over a dataset by index."""
    from torch.utils.data import IterableDataset

    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    return not isinstance(loader.dataset, IterableDataset) and type(inner).__module__.startswith("torch.")


def _ready(iterator):
    """How many batches are waiting to be taken."""
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return 0
    arrived = sum(1 for task in iterator._task_info.values() if len(task) > 1)
    return queue.qsize() + arrived


def _samples(batch, loader):
    """How many samples a batch holds: the first dimension of its first tensor, or the length of a list of them."""
    first, length = _first(batch, 1, 0)
    if loader is None or loader.batch_size is None:
        return first
    if loader.by_length is None and first != length:
        loader.by_length = first != loader.batch_size and length == loader.batch_size
    return length if loader.by_length else first


def _first(value, length, depth):
    """(first dimension of the first tensor inside, length of the sequence that holds it); 0 where there is none."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return (int(shape[0]) if len(shape) else 1), length
    if depth < 4:
        if isinstance(value, dict) or hasattr(value, "items"):
            inner, size = value.values(), length
        elif isinstance(value, (list, tuple)):
            inner, size = value, len(value)
        else:
            inner, size = list(getattr(value, "__dict__", {}).values()), length
        for item in inner:
            found = _first(item, size, depth + 1)
            if found[0]:
                return found
    return 0, length
