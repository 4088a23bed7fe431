"""Exclusive timers around named functions, by hand: what a program spends where, without floorit.

In force where TIMERS_OUT names a file: plain runs have no frame of this file on their stacks.
"""

import functools
import json
import os
import time

OUT = os.environ.get("TIMERS_OUT")
WHOLE = ("validation", "checkpoint")  # with all that is timed inside
spent, calls, _open = {}, {}, []


def _switch():
    now = time.perf_counter()
    if _open:
        name, since = _open[-1]
        spent[name] = spent.get(name, 0.0) + now - since
        _open[-1] = (name, now)
    return now


def begin(name):
    if _open and _open[-1][0] in WHOLE:
        name = _open[-1][0]
    _open.append((name, _switch()))
    calls[name] = calls.get(name, 0) + 1


def end():
    _switch()
    _open.pop()
    if _open:
        _open[-1] = (_open[-1][0], time.perf_counter())


def timed(name):
    """A decorator that times a function of the script's own."""

    def decorate(function):
        if OUT is None:
            return function

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            begin(name)
            try:
                return function(*args, **kwargs)
            finally:
                end()

        return wrapper

    return decorate


def watch(owner, method, name):
    """Time a method of somebody else's class."""
    if OUT is not None:
        setattr(owner, method, timed(name)(getattr(owner, method)))


def restart():
    """Forget what came before: training begins."""
    spent.clear()
    calls.clear()


def stop():
    """Training is over: write down what was found."""
    if OUT is not None:
        rank = os.environ.get("LOCAL_RANK", "0")
        with open(OUT if rank == "0" else f"{OUT}.{rank}", "w") as file:
            json.dump({"seconds": spent, "calls": calls}, file)
