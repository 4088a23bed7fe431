"""In which order the samples of a pass come: what decides it, so that it can be told before the pass is asked for."""

import sys
from types import FunctionType

from . import streams

_NO_WORKERS = "the loader has no workers: a batch that is made earlier would draw its random numbers earlier"
_OWN_ORDER = "batches come in an order of the program's own, which may draw random numbers as it goes"
_ENDLESS = "the dataset alone knows where it ends: its next batch cannot be taken without waiting for it"
_UNORDERED = "batches are taken as they are ready"
_HIDDEN = "its sampler may go by %s.%s, which is of a kind that cannot be put back"
_CONSTANT = (bool, int, float, str, bytes, range, type(None))
_DEPTH = 4  # of samplers within samplers


def obstacle(loader):
    """Why batches of a loader cannot be asked for early, or None."""
    from torch.utils.data import IterableDataset

    if not loader.num_workers:
        return _NO_WORKERS
    if isinstance(loader.dataset, IterableDataset):
        return _ENDLESS
    return None if getattr(loader, "in_order", True) else _UNORDERED


def obstacle_to_torchs(loader):
    """The same, where nobody but torch may say in which order samples come."""
    return obstacle(loader) or (None if all(map(_is_torchs, _samplers(loader))) else _OWN_ORDER)


def _is_torchs(thing):
    return type(thing).__module__.startswith("torch.")


def _samplers(loader):
    """What gives the numbers of samples, from the outside in."""
    from torch.utils.data import Sampler

    found = [loader.sampler if loader.batch_sampler is None else loader.batch_sampler]
    for sampler in found[:_DEPTH]:
        found += [value for value in vars(sampler).values() if isinstance(value, Sampler)]
    return found


class State:
    """What decides the order of a pass that begins now."""

    __slots__ = ("attributes", "streams")

    def __init__(self, of_streams, attributes):
        self.streams = of_streams  # of random numbers
        self.attributes = attributes  # of each sampler


class Order:
    """The order of one loader's passes."""

    def __init__(self, torch, loader):
        self._torch = torch
        self._samplers = _samplers(loader)
        self._dataset = loader.dataset
        own = [streams.of(torch, value) for thing in (loader, *self._samplers) for value in vars(thing).values()]
        every = [*streams.shared(torch), *(stream for stream in own if stream is not None)]
        self._streams = list({id(stream.source): stream for stream in every}.values())

    def hidden(self):
        """Why it cannot be told, or None."""
        for sampler in self._samplers:
            for name, value in vars(sampler).items():
                if not self._is_kept(value) and not self._stays(value):
                    return _HIDDEN % (type(sampler).__name__, name)
        return None

    def now(self):
        """Its state."""
        return State([stream.now() for stream in self._streams], [self._attributes(each) for each in self._samplers])

    def put(self, state, of_streams=None):
        """Have all be as in a state, or of the streams only some."""
        for number, (stream, own) in enumerate(zip(self._streams, state.streams)):
            if of_streams is None or of_streams[number]:
                stream.put(own)
        for sampler, own in zip(self._samplers, state.attributes):
            for name, value in own.items():
                self._set(sampler, name, value)

    def are_equal(self, one, other, *, of_streams):
        """Whether two states give the same order, if it is drawn from some of the streams only."""
        pairs = [pair for pair in zip(self._streams, one.streams, other.streams, of_streams) if pair[3]]
        return all(stream.same(*states) for stream, *states, _ in pairs) and _alike(one.attributes, other.attributes)

    def drawn_from(self, before, after):
        """Of each stream, whether it is another in the later state."""
        return [not stream.same(*states) for stream, *states in zip(self._streams, before.streams, after.streams)]

    def move(self, before, after):
        """How the program comes from one state to the other; None: that cannot be told."""
        numbers = [stream.numbers(*states) for stream, *states in zip(self._streams, before.streams, after.streams)]
        steps = [_steps(*both) for both in zip(before.attributes, after.attributes)]
        return None if None in steps else (numbers, steps)

    @staticmethod
    def tells(move, of_streams):
        """Whether a move says where some of the streams come to."""
        return all(count is not None for count, asked in zip(move[0], of_streams) if asked)

    def moved(self, before, move):
        """The state that the same move leads to from another; streams stay of which that is not known."""
        numbers, steps = move
        of_streams = [
            state if count is None else stream.moved(state, count)
            for stream, state, count in zip(self._streams, before.streams, numbers)
        ]
        attributes = [
            {name: value + step[name] if name in step else value for name, value in own.items()}
            for own, step in zip(before.attributes, steps)
        ]
        return State(of_streams, attributes)

    def _attributes(self, sampler):
        return {name: _copied(value) for name, value in vars(sampler).items() if self._is_kept(value)}

    def _set(self, sampler, name, value):
        """In place where the sampler may not be the only one that has it."""
        own = vars(sampler)[name]
        if isinstance(own, list):
            own[:] = value
        elif _is_array(own):
            own[...] = value
        elif own is not value:
            setattr(sampler, name, value)

    def _is_kept(self, value):
        """Whether a copy of it can be put back."""
        if isinstance(value, (list, tuple)):
            return all(kind in _CONSTANT for kind in set(map(type, value)))
        return type(value) in _CONSTANT or _is_array(value) or type(value) is self._torch.Tensor

    def _stays(self, value):
        """Whether it says what to draw from, and not how far a pass is."""
        from torch.utils.data import Dataset, Sampler

        is_known = isinstance(value, (Dataset, Sampler, FunctionType, type)) or value is self._dataset
        return is_known or streams.of(self._torch, value) is not None


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def _copied(value):
    if isinstance(value, list):
        return list(value)
    if _is_array(value):
        return value.copy()
    return value.clone() if hasattr(value, "clone") else value


def _same(one, other):
    if type(one) is not type(other):
        return False
    if _is_array(one):
        return one.shape == other.shape and bool((one == other).all())
    return one.equal(other) if hasattr(one, "equal") else one == other


def _alike(several, others):
    return all(
        one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
        for one, other in zip(several, others)
    )


def _steps(before, after):
    """How far each number among attributes went; None where something else was changed."""
    steps = {}
    for name, value in before.items():
        if name not in after:
            return None
        if type(value) is int and type(after[name]) is int:
            steps[name] = after[name] - value
        elif not _same(value, after[name]):
            return None
    return steps
