"""Copies to the GPU, and calls that wait for it. Nothing is touched before the program itself uses CUDA.

These are methods written in C, so they are replaced; each costs a fraction of a microsecond when it does not block.
"""

import functools
from threading import get_ident
from time import perf_counter_ns

from ..device import EventTrack
from ..traces import hide_ours
from ..wire import H2D

NAME = "copies and syncs"
# Methods that hand a value to Python: on a CUDA tensor they wait for the GPU.
BLOCKING = ("item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__", "nonzero", "__repr__")


def install(session):
    session.on_cuda.append(lambda: _install(session))
    if hasattr(session.torch, "mps") and session.torch.backends.mps.is_built():
        session.missing("copies and syncs on MPS", "only CUDA is watched")


def _install(session):
    torch = session.torch
    try:
        session.log.marker = EventTrack(torch, session.log)
        tensor = torch.Tensor
        for name in BLOCKING:
            session.patches.replace(tensor, name, _blocking(session, name, getattr(tensor, name)))
        session.patches.replace(tensor, "to", _moving(session, "to", tensor.to))
        session.patches.replace(tensor, "cuda", _moving(session, "cuda", tensor.cuda))
        session.patches.replace(tensor, "copy_", _copying(session, tensor.copy_))
        for owner, name in (
            (torch.cuda, "synchronize"),
            (torch.cuda, "empty_cache"),
            (torch.cuda.Event, "synchronize"),
            (torch.cuda.Stream, "synchronize"),
        ):
            session.patches.replace(owner, name, _waiting(session, name, getattr(owner, name)))
    except Exception as error:
        session.missing(NAME, "the probe could not be installed: %r" % (error,))


def _blocking(session, name, method):
    log = session.log

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        if not self.is_cuda or not (log.alone or get_ident() == log.thread):
            return method(self, *args, **kwargs)
        started = perf_counter_ns()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        finally:
            session.blocked(name, started)

    return wrapper


def _waiting(session, name, function):
    log = session.log

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not log.alone and get_ident() != log.thread:
            return function(*args, **kwargs)
        started = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        finally:
            session.blocked(name, started)

    return wrapper


def _moving(session, name, method):
    log = session.log
    naps = log.naps

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        if naps.is_asleep and not self.is_cuda:  # a copy to the GPU; one from it may block
            return method(self, *args, **kwargs)
        started = perf_counter_ns()
        try:
            moved = method(self, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        if moved.is_cuda is not self.is_cuda and (log.alone or get_ident() == log.thread):
            if moved.is_cuda:
                log.leaf(H2D, started)
            elif not kwargs.get("non_blocking"):
                session.blocked(name, started)
        return moved

    return wrapper


def _copying(session, method):
    log = session.log

    @functools.wraps(method)
    def wrapper(self, source, *args, **kwargs):
        started = perf_counter_ns()
        try:
            result = method(self, source, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        from_cuda = getattr(source, "is_cuda", self.is_cuda)
        if from_cuda is not self.is_cuda and (log.alone or get_ident() == log.thread):
            if self.is_cuda:
                log.leaf(H2D, started)
            elif not (kwargs.get("non_blocking") or args[:1] == (True,)):
                session.blocked("copy_", started)
        return result

    return wrapper
