"""How batches are loaded: each loader is changed as a pass over it begins, unless the pass evaluates.

The order of samples stays the program's. torch draws one number from the main process's stream for each pass,
however many workers there are, but none for a later pass of workers that are kept: where they are kept because of us
that one is drawn here, and where they are not any more it comes from a stream of our own.
"""

from sys import getrefcount
from types import CodeType, FunctionType

from ..known import Known
from .onward import Onward
from .training import evaluates

NAME = "loader overrides"
_NO_WORKERS = "the loader has no workers"
_AT_ONCE = "two passes over the loader go on at the same time: workers that are kept serve one"
_REPEATS = "the dataset is an IterableDataset that does not ask get_worker_info: more workers would repeat its samples"
# code -> attribute of a loader, and of its iterator, by which it is seen to be in force
_SEEN_AS = {
    "workers": ("num_workers", "_num_workers"),
    "prefetch": ("prefetch_factor", "_prefetch_factor"),
    "persistent": ("persistent_workers", "_persistent_workers"),
    "read-on": ("persistent_workers", "_persistent_workers"),  # as well
    "in-order": ("in_order", "_in_order"),
    "pin": ("pin_memory", "_pin_memory"),
    "context": ("multiprocessing_context", None),  # the workers have been started with it, or that has failed
}
_NEED_WORKERS = ("prefetch", "persistent", "read-on", "in-order", "context")
_KEEP_WORKERS = ("persistent", "read-on")
_REFERENCES = 3  # to an iterator that nobody has but its loader: that one, our name for it, and the argument
_USUAL_PREFETCH = 2  # torch's own, where none is asked for
CODES = tuple(_SEEN_AS)


def install(session, asked):
    from torch.utils.data import DataLoader

    loaders = _Loaders(session, asked)
    session.before_pass.append(loaders.begin)
    hooks = (loaders.making, loaders.made, loaders.began)
    session.hook(NAME, DataLoader._get_iterator, *hooks, names=("self",))


class _Loaders:
    """Every loader that the program trains from."""

    def __init__(self, session, asked):
        self._session = session
        self._asked = [asked[code] for code in CODES if code in asked]  # workers first: others need them
        self._own = Known()  # of a loader: what the program has made it with
        self._changed = Known()  # of a loader: the overrides that were set on it
        self._onward = Onward(session, asked["read-on"]) if "read-on" in asked else None
        self._own_stream = session.torch.Generator()
        self._streams = Known()  # of a loader, while its iterator is made: the stream that it must not draw from

    def begin(self, loader, place):
        """A pass over a loader that was made at `place` begins."""
        try:
            if not evaluates(self._session):
                self._change_all(loader, place)
        except Exception as error:
            for applied in self._asked:
                applied.fail("a loader could not be changed: %r" % (error,))

    def _change_all(self, loader, place):
        is_again = id(loader) in self._own
        own = self._own[id(loader)] if is_again else self._own.learn(loader, _settings(loader))
        changed = [applied for applied in self._asked if self._change(loader, applied, own, place)]
        self._changed.learn(loader, changed)
        kept_before, kept_now = _keeps_workers(own), _keeps_workers(_settings(loader))
        if kept_now and not kept_before and getattr(loader, "_iterator", None) is not None:
            self._draw(loader)
        elif is_again and kept_before and not kept_now:
            self._spare(loader)

    def _change(self, loader, applied, own, place):
        """Whether it is set now."""
        code, value, name = applied.code, applied.value, _SEEN_AS[applied.code][0]
        if code in _NEED_WORKERS and not loader.num_workers:
            return applied.unmet(_NO_WORKERS)
        if not hasattr(loader, name):
            return applied.fail("this version of torch has no %s" % name)
        if code in _KEEP_WORKERS and value and not own[code] and self._is_under_way(loader):
            self._session.patches.assign(loader, name, False)
            self._session.patches.assign(loader, "_iterator", None)  # who goes on with it has it
            return applied.fail(_AT_ONCE)
        if _settings(loader)[code] == value:
            return True
        if code == "workers" and value > 1 and _would_repeat(loader.dataset):
            return applied.fail(_REPEATS)
        applied.opposed(own[code], place)
        self._session.patches.assign(loader, name, value)
        if code == "workers":
            self._fit_to_workers(loader)
        return True

    def _is_under_way(self, loader):
        """Whether the last pass with the workers that are kept has batches to give, to somebody who still has it."""
        iterator = getattr(loader, "_iterator", None)
        if iterator is None or not getattr(iterator, "_tasks_outstanding", 0):
            return False
        if self._onward is not None and self._onward.is_between_passes(iterator):
            return False
        return getrefcount(iterator) > _REFERENCES

    def _fit_to_workers(self, loader):
        """What torch demands of a loader with workers, and of one without."""
        assign = self._session.patches.assign
        if not loader.num_workers:
            assign(loader, "timeout", 0)
        elif loader.prefetch_factor is None:
            assign(loader, "prefetch_factor", _USUAL_PREFETCH)

    def _draw(self, loader):
        """The number that starting the workers again would draw."""
        torch = self._session.torch
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)

    def _spare(self, loader):
        """Have the number that starting the workers again draws come from elsewhere."""
        self._streams.learn(loader, [loader.generator])

    def making(self, loader):
        """The iterator of a pass is being made."""
        if id(loader) in self._streams:
            self._session.patches.assign(loader, "generator", self._own_stream)
        return loader

    def made(self, loader):
        """However that ended."""
        stream = self._streams.pop(id(loader), None)
        if stream is not None:
            self._session.patches.assign(loader, "generator", stream[0])

    def began(self, loader, iterator):
        """The iterator of a pass is made: what is really in force in it."""
        for applied in self._changed.get(id(loader)) or ():
            name = _SEEN_AS[applied.code][1]
            if applied.code == "read-on":
                self._onward.follow(loader, iterator)
            elif name is None or getattr(iterator, name) == applied.value:
                applied.act()
            elif applied.code == "pin":
                applied.fail("torch finds no accelerator to pin memory for")
            else:
                applied.fail("the loader's iterator has %s = %r" % (name, getattr(iterator, name)))


def _settings(loader):
    """What a loader has now, by the code of the override."""
    found = {code: getattr(loader, name, None) for code, (name, _) in _SEEN_AS.items()}
    context = found["context"]
    return {**found, "context": None if context is None else context.get_start_method()}


def _keeps_workers(settings):
    return bool(settings["workers"] and settings["persistent"])


def _would_repeat(dataset):
    """Whether each worker would hand out all of it."""
    from torch.utils.data import IterableDataset

    methods = [value for kind in type(dataset).__mro__ for value in vars(kind).values()]
    codes = [method.__code__ for method in methods if isinstance(method, FunctionType)]
    return isinstance(dataset, IterableDataset) and not any(map(_asks_which_worker, codes))


def _asks_which_worker(code):
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return "get_worker_info" in code.co_names or any(map(_asks_which_worker, inner))
