"""What the kernel window has open: the profiler of kernels and, timed beside it, calls that may wait for the GPU.

To index by a mask, torch must know how many elements are chosen, so it waits for the GPU; other indexing is the same
function and does not wait. To time it always would cost every index of a program something, so it and its kin are
timed in these few steps alone. Which calls have waited, and for how long, the trace tells.
"""

import os
import warnings
from time import perf_counter_ns
from types import BuiltinFunctionType, MethodType

from .compiling import compilations
from .disguise import Disguise
from .sampler import caller
from .traces import hide_ours, told_of_the_caller
from .window import Kineto

# What waits where its result, or what it does next, rests on values: methods, and functions of the same name.
# Methods that hand a value to Python are timed always.
_INDEXING = ("__getitem__", "__setitem__", "index_put", "index_put_")
_BOTH = (
    *("allclose", "argwhere", "bincount", "equal", "histc", "masked_select", "repeat_interleave", "type"),
    *("where", "cholesky", "det", "inverse", "logdet", "pinverse", "slogdet", "svd"),
)
_FUNCTIONS = ("is_nonzero", "nonzero", "unique", "unique_consecutive")
LEAST = 5_000  # nanoseconds: what waits takes several times as long
MOST = 20_000  # calls that are kept
MOST_SITES = 1_000


class Kernels(Kineto):
    """The profiler of kernels, which says beside its trace which calls may have waited."""

    def __init__(self, session, waits):
        super().__init__(session.torch, lambda: session.has_graphs)
        self._waits = waits

    def start(self):
        """Watch from now on."""
        super().start()
        self._waits.put()

    def stop(self, take_down=True):
        """What was seen."""
        self._waits.take()
        return super().stop(take_down)

    def cancel(self):
        """Stop, if it has started."""
        self._waits.take()
        super().cancel()

    def facts(self):
        """What is noted beside the trace."""
        return {"waits": self._waits.facts()}


class Waits:
    """Calls that may wait, by the lines that they are in."""

    def __init__(self, session):
        self._session = session
        self._stands = None
        self._reason = None  # why none is timed
        self._forget()

    def put(self):
        """Time calls from now on, and forget those before."""
        self._forget()
        try:
            self._reason = _obstacle()
            if self._reason is None:
                if self._stands is None:
                    self._stands = list(self._made())
                for stand in self._stands:
                    stand.put()
        except Exception as error:
            self.take()
            self._reason = "they could not be timed: %r" % (error,)

    def take(self):
        """Leave calls alone."""
        for stand in self._stands or ():
            stand.take()

    def facts(self):
        """What is noted."""
        if self._reason is not None:
            return {"reason": self._reason}
        return {"sites": [list(site) for site in self._sites], "calls": self._calls, "left_out": self._left_out}

    def add(self, op, started):
        """A call of a function has returned."""
        now = perf_counter_ns()
        if now - started < LEAST or not self._session.mine():
            return
        try:
            self._add(op, started, now)
        except Exception as error:
            self._reason = "they could not be timed: %r" % (error,)

    def _add(self, op, started, now):
        frame, _ = caller(2)
        if frame is None:
            return
        code = frame.f_code
        site = os.path.abspath(code.co_filename), frame.f_lineno, code.co_name, op
        number = self._sites.get(site)
        if number is None and len(self._sites) < MOST_SITES:
            number = self._sites[site] = len(self._sites)
        if number is None or len(self._calls) >= MOST:
            self._left_out += 1
        else:
            self._calls.append((started, now, number))

    def _forget(self):
        self._sites, self._calls, self._left_out = {}, [], 0

    def _made(self):
        """A stand-in for each function that may wait."""
        torch = self._session.torch
        for owner, place, names in (
            (torch.Tensor, "torch:Tensor.%s", (*_INDEXING, *_BOTH)),
            (torch, "torch:%s", (*_BOTH, *_FUNCTIONS)),
            (torch.nn.functional, "torch.nn.functional:%s", ("one_hot",)),
            (torch.linalg, "torch.linalg:%s", _written_in_c(torch.linalg)),
        ):
            for name in names:
                function = getattr(owner, name, None)
                if callable(function):
                    yield self._session.patches.stand_in(owner, name, _Asked(self, function, place % name, name))
        shown = getattr(warnings, "_showwarnmsg", None)
        if shown is not None:
            yield self._session.patches.stand_in(warnings, "_showwarnmsg", told_of_the_caller(shown))


class _Asked(Disguise):
    """A function that may wait for the GPU."""

    def __init__(self, waits, function, place, name):
        super().__init__(function, place)
        self._waits, self._name = waits, name

    def __call__(self, *args, **kwargs):
        started = perf_counter_ns()
        try:
            value = self._function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        self._waits.add(self._name, started)
        return value

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)


def _obstacle():
    """Why calls are not to be timed, or None."""
    if compilations():
        return "torch.compile was in use"  # it knows functions by what they are
    if any(rule[0] == "error" for rule in warnings.filters):
        return "the program turns warnings into errors"  # of which functions in C are given where they are called
    return None


def _written_in_c(module):
    return [name for name, value in vars(module).items() if isinstance(value, BuiltinFunctionType) and name[0] != "_"]
