"""Batches: when one is asked for, how long it takes, how large it is, how many wait."""

import os
import weakref
from itertools import islice
from threading import get_ident
from time import perf_counter_ns

from ..known import Known
from ..naps import BETWEEN
from ..sampler import USER, caller, origin
from ..wire import EPOCH_GAP, IN, NEXT_FRESH_IN, NEXT_IN, NEXT_OUT, OUT, READY, SHIFT

NAME = "data loader"
_DEPTH = 4  # of what a batch is made of: how far it is looked into
_IMAGES = 4  # dimensions of a batch of images
_ASKS_CORES = frozenset(("cpu_count", "process_cpu_count", "sched_getaffinity", "cpu_affinity"))
SHAPES, _TENSORS = 8, 4  # batches of a loader whose shapes are noted, and tensors in each
SOME = 7  # of the batches, every eighth: how full the queue is, and what a batch made in this process costs


def install(session):
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    batches = _Batches(session)
    session.hook(NAME, DataLoader.__init__, batches.made, names=("self",))
    session.count_waiting = batches.count_waiting
    session.number_of_loader = batches.number_of
    begins = (batches.enter_iter, batches.leave_iter, batches.made_iter)
    session.hook(NAME, DataLoader.__iter__, *begins, names=("self",))
    asks = (batches.enter_next, batches.leave_next, batches.got)
    hooks = session.hook(NAME, _BaseDataLoaderIter.__next__, *asks, names=("self",), choose=batches.choose)
    session.log.naps.add(hooks)


class _Loader:
    """What is known of one DataLoader."""

    __slots__ = ("alike", "batch_size", "by_length", "is_prebatched", "number", "unseen", "workers")

    def __init__(self, number, loader, length):
        self.number = number
        self.workers = loader.num_workers
        self.batch_size = loader.batch_size
        self.by_length = None  # whether samples are counted by a list's length; not known before the first batch
        self.alike = _alike(loader, length)
        self.unseen = SHAPES  # batches whose shapes are still to be noted
        # Whether its samples are whole batches; not known before the model has been called with the first of them.
        self.is_prebatched = None if loader.batch_size == 1 else False

    def settle(self, shapes, value):
        """Of `shapes` in a batch of one sample, the model was called with `value`.

        It is a batch of its own if the loader's dimension was taken off. Not where less than images are in it: the
        points of a cloud and the nodes of a graph look the same, and are one sample.
        """
        called = tuple(getattr(value, "shape", ()))
        self.is_prebatched = len(called) >= _IMAGES and called in [shape[1:] for shape in shapes]
        if self.is_prebatched:
            self.by_length = None


class _Pass:
    """One pass over a loader."""

    __slots__ = ("alike", "got", "has_queue", "key", "loader", "number", "promised", "samples", "whole", "word")

    def __init__(self, number, loader, iterator):
        self.number = number
        self.key = id(iterator)  # a pass that follows may have the same, but no nap goes on into it
        self.loader = loader
        self.has_queue = loader is not None and loader.workers > 0
        self.word = number << SHIFT | (NEXT_FRESH_IN if self.has_queue else NEXT_IN)
        self.got = 0  # the word for the batch that is being handed out; 0 where none came
        self.samples = 0  # of the first batch
        self.whole = 0  # the word for a batch of so many
        self.alike = 0  # batches to come that hold as many, and are not looked at
        self.promised = 0  # the same, while they are


class _Batches:
    """Each batch that the program asks for."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._loaders = Known()
        self._makers = Known()  # of a loader: where it was made
        self._passes = Known()  # by its iterator
        self._loader_count = self._pass_count = 0
        self._queue = None  # weak reference to the iterator that was last asked how many batches wait
        self._this = None  # the pass that is at a border

    def made(self, loader):
        """A loader is being made."""
        self._makers.learn(loader, _maker())

    def enter_iter(self, loader):
        session, log = self._session, self._log
        for told in session.before_pass:
            told(loader, _place(self._makers.get(id(loader))))
        if not session.mine():
            return None
        if log.settle is not None:
            session.settle()
        log.naps.wake(BETWEEN)
        known = self._describe(loader)
        log.add(IN + EPOCH_GAP)
        return known

    def made_iter(self, known, iterator):
        self._begin_pass(known, iterator)

    def leave_iter(self, _):
        self._log.add(OUT + EPOCH_GAP)

    def enter_next(self, iterator):
        log = self._log
        if not log.alone and get_ident() != log.thread:
            return self._note_elsewhere(iterator)
        this = self._passes.get(id(iterator)) or self._begin_pass(None, iterator)
        if not log.batches & SOME:
            self._look_closer(this, iterator)
        word, this.word = this.word, this.number << SHIFT | NEXT_IN
        log.batches += 1
        log.batch_came = log.border_came = True
        if log.attend is None:
            log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
        else:
            self._this = this
            log.attend(word)
            self._this = None
        return this

    def choose(self):
        """A nap begins: the pass whose batches are counted leanly, if any."""
        return self._this

    def _look_closer(self, this, iterator):
        if this.has_queue:
            self._queue = weakref.ref(iterator)
            self._log.events.append((perf_counter_ns(), _ready(iterator) << SHIFT | READY))
        else:
            self._session.time_fetch()

    def count_waiting(self):
        """How many batches wait to be taken; 0 where there is no queue."""
        iterator = self._queue() if self._queue is not None else None
        return 0 if iterator is None else _ready(iterator)

    def number_of(self, loader):
        """The number of a loader in the record; 0 where it was never read on the training thread."""
        known = self._loaders.get(id(loader))
        return 0 if known is None else known.number

    def got(self, this, batch):
        if this.alike:
            this.alike -= 1
        else:
            loader = this.loader
            first, this.samples = not this.samples, self._count(batch, loader)
            if loader is not None:
                if first:
                    this.promised = loader.alike
                elif this.promised:
                    this.promised -= 1
                if loader.unseen:
                    self._look_at_shapes(batch, loader)
                elif this.promised:
                    this.alike, this.promised = this.promised, 0
            this.whole = (1 + this.samples) << SHIFT | NEXT_OUT
        this.got = this.whole

    def leave_next(self, this):
        """Only here is the batch handed out: before, torch leaves a profiler's range that it holds around the body."""
        log = self._log
        word, this.got = this.got, 0
        log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word or NEXT_OUT))
        if not word:
            log.naps.wake(BETWEEN)
            self._session.memory_error()

    def _count(self, batch, loader):
        if loader is None or loader.is_prebatched is False:
            return _samples(batch, loader)
        shapes = list(_shapes(batch, 0))
        inner = _inner(shapes)
        if loader.is_prebatched:
            return inner or _samples(batch, loader)
        if inner > 1:
            self._session.look_at_input(lambda value: loader.settle(shapes, value))
        else:
            loader.is_prebatched = False
        return _samples(batch, loader)

    def _look_at_shapes(self, batch, loader):
        """Of the first batches, to tell whether they vary."""
        loader.unseen -= 1
        shapes = list(islice(_shapes(batch, 0), _TENSORS))
        self._session.writer.note("shapes", loader=loader.number, shapes=shapes)

    def _describe(self, loader):
        known = self._loaders.get(id(loader))
        if known is None:
            self._loader_count += 1
            facts = {**_facts(loader), **(self._makers.get(id(loader)) or {})}
            known = self._loaders.learn(loader, _Loader(self._loader_count, loader, facts["length"]))
            self._session.writer.note("loader", id=known.number, **facts)
        return known

    def _begin_pass(self, loader, iterator):
        self._pass_count += 1
        made = self._passes.learn(iterator, _Pass(self._pass_count, loader, iterator))
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
        "drop_last": loader.drop_last,
        "shuffle": _shuffles(loader.sampler),
        "dataset": "%s.%s" % (dataset.__module__, dataset.__qualname__),
        # Asking a sampler of the user's own could run code that would not have run.
        "length": len(loader) if sampler.__module__.startswith("torch.") and _sized(loader) else None,
        "file": frame.f_code.co_filename if frame else None,
        "line": frame.f_lineno if frame else None,
    }


def _maker():
    """The program's line that makes a loader, and whether it asks there how many cores there are."""
    frame, kind = caller(3)
    made = {"made_file": None, "made_line": None, "made_function": None, "asks_cores": False}
    if kind is USER:
        code = frame.f_code
        made.update(made_file=os.path.abspath(code.co_filename), made_line=frame.f_lineno, made_function=code.co_name)
    while frame is not None:
        if origin(frame.f_code.co_filename) is USER and not _ASKS_CORES.isdisjoint(frame.f_code.co_names):
            made["asks_cores"] = True
        frame = frame.f_back
    return made


def _place(made):
    """File, line and function; None where that is not known."""
    known = made is not None and made["made_file"] is not None
    return (made["made_file"], made["made_line"], made["made_function"]) if known else None


def _shuffles(sampler):
    """Whether samples come in random order; None where the sampler is not one of torch's own."""
    kind = type(sampler)
    if not kind.__module__.startswith("torch."):
        return None
    if kind.__name__ == "DistributedSampler":
        return sampler.shuffle
    return {"RandomSampler": True, "SequentialSampler": False}.get(kind.__name__)


def _sized(loader):
    """Whether the length comes from torch's own samplers over a dataset by index."""
    from torch.utils.data import IterableDataset

    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    return not isinstance(loader.dataset, IterableDataset) and type(inner).__module__.startswith("torch.")


def _alike(loader, length):
    """How many batches after the first of a pass are sure to hold as many samples, because torch alone makes them."""
    from torch.utils.data import default_collate

    may_be_prebatched = loader.batch_size == 1
    if length is None or may_be_prebatched or loader.collate_fn is not default_collate:
        return 0
    return max(length - 2, 0)


def _ready(iterator):
    """How many batches are waiting to be taken."""
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return 0
    arrived = sum(1 for task in iterator._task_info.values() if len(task) > 1)
    return queue.qsize() + arrived


def _samples(batch, loader):
    """How many samples a batch holds: the first dimension of its first tensor, or the length of a list of them.

    No more than the loader asked for: nodes of graphs and points of clouds may lie in one tensor, end to end.
    """
    first, length = _first(batch, 1, 0)
    if loader is None or loader.batch_size is None:
        return first
    if loader.by_length is None and first != length:
        loader.by_length = first != loader.batch_size and length == loader.batch_size
    counted = length if loader.by_length else first
    return min(counted, loader.batch_size) if loader.batch_size > 1 else counted


def _shapes(value, depth):
    """Of every tensor in a batch."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        yield tuple(shape)
    elif depth < _DEPTH and isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _shapes(item, depth + 1)


def _inner(shapes):
    """The second dimension that all tensors of one sample share; 0 where they do not."""
    found = {shape[1] if len(shape) > 1 and shape[0] == 1 else 0 for shape in shapes}
    return found.pop() if len(found) == 1 else 0


def _first(value, length, depth):
    """(first dimension of the first tensor inside, length of the sequence that holds it); 0 where there is none."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return (int(shape[0]) if len(shape) else 1), length
    if depth < _DEPTH:
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
