"""Batches: when one is asked for, how long it takes, how large it is, how many wait."""

import weakref
from threading import get_ident

from ..sampler import caller
from ..steps import READY, SAMPLES
from ..wire import DATA_WAIT, EPOCH_GAP, NO_QUEUE

NAME = "data loader"
SOME = 7  # of the batches, every eighth: how full the queue is, and what a batch made in this process costs


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

    __slots__ = ("depth", "fresh", "got", "iterator", "loader", "number")

    def __init__(self, number, loader, iterator):
        self.number = number
        self.loader = loader
        self.iterator = weakref.ref(iterator)
        self.fresh = True


def install(session):
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    loaders, passes = weakref.WeakKeyDictionary(), {}
    clock, steps, writer, time_fetches = session.clock, session.steps, session.writer, session.time_fetches
    numbers = [0, 0]

    def describe(loader):
        known = loaders.get(loader)
        if known is None:
            numbers[0] += 1
            known = loaders[loader] = _Loader(numbers[0], loader)
            writer.note("loader", id=known.number, **_facts(loader))
        return known

    def make_pass(loader, iterator):
        for key in [key for key, old in passes.items() if old.iterator() is None]:
            del passes[key]
        numbers[1] += 1
        made = passes[id(iterator)] = _Pass(numbers[1], loader, iterator)
        pids = [process.pid for process in getattr(iterator, "_workers", ())]
        writer.note("iterator", id=made.number, loader=loader.number if loader else 0, pids=pids)
        return made

    def enter_iter(loader):
        if not session.mine() or clock.current in (DATA_WAIT, EPOCH_GAP):
            return None
        if session.unsettled:
            session.settle()
        known = describe(loader)
        return [clock.enter(EPOCH_GAP), known]

    def made_iter(token, iterator):
        make_pass(token[1], iterator)

    def leave_iter(token):
        clock.leave(token[0])

    def note_elsewhere(iterator):
        if not steps.backwards_ever:  # that thread may turn out to be the one that trains
            this = passes.get(id(iterator)) or make_pass(None, iterator)
            session.elsewhere[get_ident()] = this.number

    def enter_next(iterator):
        current = clock.current
        if get_ident() != clock.thread:
            return note_elsewhere(iterator)
        if current in (DATA_WAIT, EPOCH_GAP):
            return None  # a loader inside a loader: the outer one's wait
        if session.unsettled:
            session.settle()
        if clock.stack:
            clock.unwind()
        this = passes.get(id(iterator))
        if this is None or this.iterator() is not iterator:
            this = make_pass(None, iterator)
        steps.batch(this.number)
        time_fetches[0] = some = not steps.number & SOME
        loader = this.loader
        phase = DATA_WAIT
        if loader is not None and loader.workers:
            if some:
                steps.row[READY] = _ready(iterator)
            if this.fresh:
                phase = EPOCH_GAP
        this.fresh = this.got = False
        this.depth = clock.enter(phase)
        return this

    def got(this, batch):
        this.got = True
        loader = this.loader
        if type(batch) is list and loader is not None and loader.by_length is False:
            shape = getattr(batch[0], "shape", None) if batch else None
            if shape:
                steps.row[SAMPLES] = shape[0]
                return
        steps.row[SAMPLES] = _samples(batch, loader)

    def leave_next(this):
        clock.leave(this.depth)
        if not this.got:
            steps.exhausted()
            clock.spent[EPOCH_GAP] += clock.spent[DATA_WAIT]
            clock.spent[DATA_WAIT] = 0

    session.hook(NAME, DataLoader.__iter__, enter_iter, leave_iter, made_iter, names=("self",))
    session.hook(NAME, _BaseDataLoaderIter.__next__, enter_next, leave_next, got, names=("self",))


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
        return NO_QUEUE
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
