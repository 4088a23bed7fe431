"""Debugging switches: who turned them on, and where; what of their cost can be timed."""

import os
import sys
from threading import get_ident
from time import perf_counter_ns

from ..imports import after_import
from ..sampler import TORCH, caller, origin

NAME = "debugging switches"
# Environment variables that make every step slower while they are set.
VARIABLES = ("CUDA_LAUNCH_BLOCKING", "TORCH_DISTRIBUTED_DEBUG", "PYTORCH_NO_CUDA_MEMORY_CACHING")


def install(session):
    from torch.autograd import anomaly_mode

    log, is_on, is_timed = session.log, session.torch.is_anomaly_enabled, []
    log.anomaly = is_on()

    def switching(*_):
        if origin(sys._getframe(2).f_code.co_filename) is not TORCH:  # torch.compile does so while it traces
            note_place()
        return True

    def note_place():
        frame, _ = caller(3)
        place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else (None, None, None)
        session.remember("switch", name="detect_anomaly", file=place[0], line=place[1], function=place[2])
        if not is_timed:
            is_timed.append(True)
            after_import("torch.fx.traceback", lambda traceback: _time_traces(session, traceback))

    def switched(_):
        log.anomaly = is_on()

    for kind, on in ((anomaly_mode.set_detect_anomaly, "__init__"), (anomaly_mode.detect_anomaly, "__enter__")):
        session.hook(NAME, getattr(kind, on), switching, switched)
        session.hook(NAME, kind.__exit__, lambda: True, switched)
    for name in VARIABLES:
        value = os.environ.get(name)
        if value not in (None, "", "0", "OFF"):
            session.remember("switch", name=name, value=value, file=None, line=None, function=None)


def _time_traces(session, traceback):
    """Anomaly detection has a stack trace formatted for each operation."""

    def enter():
        return perf_counter_ns() if get_ident() == session.log.thread else None

    def leave(started):
        session.traced += perf_counter_ns() - started

    try:
        session.hook(NAME, traceback.format_stack, enter, leave)
    except Exception as error:
        session.missing("the stack traces of anomaly detection", repr(error))
