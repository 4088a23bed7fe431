"""Streams of random numbers: torch's, Python's and numpy's. Their states, and how far it is from one to another."""

import random
import sys

_FURTHEST = 256  # numbers of 32 bits; a loader that evaluates draws two


class Stream:
    """One of them; its kinds say how it is read."""

    def __init__(self, source):
        self.source = source

    def numbers(self, before, after):
        """How many were drawn between two states; None: too many, or something else was done to it."""
        stream = self.at(before)
        for count in range(_FURTHEST + 1):
            if self.same(stream.now(), after):
                return count
            stream.draw()
        return None

    def moved(self, before, count):
        """The state after so many."""
        stream = self.at(before)
        for _ in range(count):
            stream.draw()
        return stream.now()


class _Torchs(Stream):
    def __init__(self, torch, source):
        super().__init__(source)
        self._torch = torch

    def now(self):
        return self.source.get_state()

    def put(self, state):
        self.source.set_state(state)

    def at(self, state):
        stream = _Torchs(self._torch, self._torch.Generator())
        stream.put(state)
        return stream

    def draw(self):
        self._torch.empty(1, dtype=self._torch.int32, device="cpu").random_(generator=self.source)

    @staticmethod
    def same(one, other):
        return one.equal(other)


class _Pythons(Stream):
    def now(self):
        return self.source.getstate()

    def put(self, state):
        self.source.setstate(state)

    def at(self, state):
        stream = _Pythons(random.Random())
        stream.put(state)
        return stream

    def draw(self):
        self.source.getrandbits(32)

    @staticmethod
    def same(one, other):
        return one == other


class _Numpys(Stream):
    def now(self):
        return self.source.get_state(legacy=False)

    def put(self, state):
        self.source.set_state(state)

    def at(self, state):
        stream = _Numpys(type(self.source)())
        stream.put(state)
        return stream

    def draw(self):
        self.source.bytes(4)

    @staticmethod
    def same(one, other):
        return _comparable(one) == _comparable(other)


def _comparable(state):
    own = state["state"]
    return state["bit_generator"], own["key"].tobytes(), own["pos"], state["has_gauss"], state["gauss"]


def shared(torch):
    """Those that anybody may draw from."""
    numpy = sys.modules.get("numpy.random")
    hidden = [] if numpy is None else [_Numpys(numpy.mtrand._rand)]
    return [_Torchs(torch, torch.default_generator), _Pythons(random._inst), *hidden]


def of(torch, value):
    """The stream that an object is; None: none of those that are known."""
    if isinstance(value, torch.Generator):
        return _Torchs(torch, value)
    if type(value) is random.Random:
        return _Pythons(value)
    numpy = sys.modules.get("numpy.random")
    return _Numpys(value) if numpy is not None and type(value) is numpy.RandomState else None
