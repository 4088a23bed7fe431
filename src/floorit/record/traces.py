"""Takes our own frames out of the tracebacks that a program or Python prints.

Only functions written in C are wrapped, and only then a frame of ours is in the way of an exception; nothing is
changed before one has passed through.
"""

import sys
import traceback
import types

from .sampler import OURS, origin

_hidden = []


def hide_ours():
    """An exception is passing through us: wherever it is printed, it is to look as if we were not there."""
    if _hidden:
        return
    _hidden.append(sys.excepthook)
    sys.excepthook = _hook
    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        walk = getattr(traceback, name, None)
        if walk is not None:
            setattr(traceback, name, _walking_past_us(walk))


def is_from_signal(error):
    """Whether it was raised by a handler of a signal that came while code of ours ran: then it is the program's own.

    So torch tells a program that a worker of its loader has died. Our frames are hidden from what it prints.
    """
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        given = [frame.f_locals.get(name) for name in names[-2:]]  # (number, frame), perhaps after self
        if len(given) == 2 and isinstance(given[0], int) and isinstance(given[1], types.FrameType):
            hide_ours()
            return True
        trace = trace.tb_next
    return False


def _walking_past_us(walk):
    def walk_past_us(trace):
        for frame, place in walk(trace):
            if origin(frame.f_code.co_filename) is not OURS:
                yield frame, place

    return walk_past_us


def _hook(kind, error, trace):
    clean = without_ours(trace)
    _clean_chain(error, set())
    if sys.excepthook is _hook:
        sys.excepthook = _hidden[0]
    sys.excepthook(kind, error, clean)


def without_ours(trace):
    """The same traceback without our frames."""
    while trace is not None and origin(trace.tb_frame.f_code.co_filename) is OURS:
        trace = trace.tb_next
    at = trace
    while at is not None:
        while at.tb_next is not None and origin(at.tb_next.tb_frame.f_code.co_filename) is OURS:
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return trace


def _clean_chain(error, seen):
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = without_ours(error.__traceback__)
        _clean_chain(error.__cause__, seen)
        error = error.__context__
