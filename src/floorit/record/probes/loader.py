"""Batches: when one is asked for, how long it takes, how large it is, how many wait."""

from weakref import WeakKeyDictionary

from ..sampler import caller
from ..wire import DATA_WAIT, EPOCH_GAP, NO_QUEUE

NAME = "data loader"


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

    __slots__ = ("fresh", "loader", "number")

    def __init__(self, number, loader):
        self.number = number
        self.loader = loader
        self.fresh = True


def install(session):
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    loaders, passes = WeakKeyDictionary(), WeakKeyDictionary()
    clock, steps, writer = session.clock, session.steps, session.writer
    numbers = [0, 0]

    def describe(loader):
        known = loaders.get(loader)
        if known is None:
            numbers[0] += 1
            known = loaders[loader] = _Loader(numbers[0], loader)
            writer.note("loader", id=known.number, **_facts(loader))
        return known

    def make_pass(loader, iterator):
        numbers[1] += 1
        made = passes[iterator] = _Pass(numbers[1], loader)
        pids = [process.pid for process in getattr(iterator, "_workers", ())]
        writer.note("iterator", id=made.number, loader=loader.number if loader else 0, pids=pids)
        return made

    def enter_iter(loader):
        if not session.mine() or clock.current in (DATA_WAIT, EPOCH_GAP):
            return None
        session.border()
        return [clock.enter(EPOCH_GAP), describe(loader)]

    def made_iter(token, iterator):
        make_pass(token[1], iterator)

    def leave_iter(token):
        clock.leave(token[0])
        if not session.sampler.running:  # forking workers stopped it
            session.sampler.start()

    def enter_next(iterator):
        if not session.mine() or clock.current in (DATA_WAIT, EPOCH_GAP):
            return None  # a loader inside a loader: the outer one's wait
        session.border()
        clock.unwind()
        this = passes.get(iterator) or make_pass(None, iterator)
        steps.batch(this.number)
        steps.ready = _ready(iterator)
        starting = this.fresh and this.loader is not None and this.loader.workers > 0
        this.fresh = False
        return [clock.enter(EPOCH_GAP if starting else DATA_WAIT), this, False]

    def got(token, batch):
        token[2] = True
        steps.samples = _samples(batch, token[1].loader)

    def leave_next(token):
        clock.leave(token[0])
        if not token[2]:
            steps.exhausted()
            clock.spent[EPOCH_GAP] += clock.spent[DATA_WAIT]
            clock.spent[DATA_WAIT] = 0

    session.hook(NAME, DataLoader.__iter__, enter_iter, leave_iter, made_iter, names=("self",))
    session.hook(NAME, _BaseDataLoaderIter.__next__, enter_next, leave_next, got, names=("self",))


def _facts(loader):
    frame, _ = caller(3)
    dataset = type(loader.dataset)
    sampler = type(loader.batch_sampler or loader.sampler)
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
    if loader.by_length is None:
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
