"""The recorder: what runs inside the user's process. The standard library and the user's own torch, nothing else."""

import json
import os
import sys
from types import CodeType, FunctionType

from .imports import after_import

# What `floorit.span` and `floorit.step` look for: None until torch is imported, then a Names.
names = None


def is_compiling():
    """Whether torch.compile traces the call."""
    return False


def arm(folder):
    """Wait for torch; a process that never imports it is left alone."""
    from . import seeding

    after_import("torch", lambda torch: _install(folder, torch))
    if seeding.VARIABLE in os.environ:
        seeding.seed(os.environ[seeding.VARIABLE])


def _install(folder, torch):
    from . import probes
    from .session import Session
    from .wire import DRAIN, FIXES, LOSSES, REPLAY

    session = Session(folder, torch)
    globals().update(names=session.names, is_compiling=torch.compiler.is_dynamo_compiling)
    for name, install in probes.ALL:
        try:
            install(session)
        except Exception as error:
            session.missing(name, "the probe could not be installed: %r" % (error,))
    if any(asked in os.environ for asked in (REPLAY, FIXES, LOSSES)):
        session.log.naps.give_up()  # what is asked for rests on hooks that would be out
    if REPLAY in os.environ:
        _override(session, os.environ[REPLAY])
    if DRAIN in os.environ:
        _drain(session, os.environ[DRAIN])
    if FIXES in os.environ:
        _apply(session, os.environ[FIXES])
    if LOSSES in os.environ:
        _plant(session, os.environ[LOSSES])
    after_import("torch._dynamo.eval_frame", lambda dynamo: _hide_from_compiler(session, dynamo))
    session.log.reset()


def _override(session, plan):
    """Take the data path away, and count what a step computes: this is the floor run."""
    from . import counting, replaying

    for override in (replaying, counting):
        _plan(session, override, plan)


def _drain(session, plan):
    """Take batches, and train nothing."""
    from . import draining

    _plan(session, draining, plan)


def _plan(session, override, plan):
    try:
        override.install(session, json.loads(plan))
    except Exception as error:
        session.missing(override.NAME, "it could not be installed: %r" % (error,))


def _apply(session, fixes):
    """Put the fixes in force that are to be tried."""
    from . import overrides

    try:
        overrides.install(session, fixes)
    except Exception as error:
        session.missing("overrides", "they could not be installed: %r" % (error,))


def _plant(session, asked):
    """A rounding error, where a trial is to show how far one goes."""
    from . import losses

    try:
        losses.plant(session, asked)
    except Exception as error:
        session.missing(losses.NAME, "no rounding error could be planted: %r" % (error,))


def _hide_from_compiler(session, dynamo):
    """Have torch.compile pass over every function of ours, as it does over torch's own."""
    try:
        skip = dynamo.skip_code
        ours = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == __name__]
        waiting = [code for module in ours for code in _codes(module)]
        while waiting:
            code = waiting.pop()
            skip(code)
            waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    except Exception as error:
        session.missing("torch.compile", "it may see the recorder: %r" % (error,))


def _codes(module):
    """The code of every function in a module and of every method of its classes."""
    for owner in (module, *(value for value in vars(module).values() if isinstance(value, type))):
        for member in vars(owner).values():
            if isinstance(member, FunctionType):
                yield member.__code__
