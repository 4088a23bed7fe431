"""The same events on the GPU's clock: CUDA events from a pool, read when they are done, never waited for.

Where the stretches between two borders are short, only some are marked, so that the marks cost at most 0.1 %; once
there are many, 0.03 %.
"""

from array import array
from collections import deque
from itertools import pairwise
from random import Random
from time import perf_counter_ns

from .wire import MARKS, MARKS_IN, MARKS_OUT

_SHARE = 0.001  # of the host's time that marks may cost, on average
_MANY, _SHARE_THEN = 100, 0.0003  # stretches that have been marked, and the same from then on
_MOST_WAITING = 64  # stretches whose events are not done yet
_MOST_MARKS = 2000  # in one stretch
# After a rest so many stretches at most are let pass, at random. A rest is likely to end in a long one: where a loop
# updates two models in turn, only the other one's stretches would be marked.
_MOST_PASSED = 3


class EventTrack:
    """Marks on the GPU's clock, in the stretches between two borders that are chosen for it."""

    def __init__(self, torch, log):
        self._event = torch.cuda.Event
        self._capturing = torch.cuda.is_current_stream_capturing
        self._log = log
        self._pool = []
        self._waiting = deque()  # (time of MARKS_IN, events)
        self._marks = []
        self._began = None  # MARKS_IN of the stretch being marked
        self._opened = perf_counter_ns()
        self._cost = 0
        self._marked = 0  # stretches
        self._rests_until = 0  # no stretch is marked before
        self._passes = 0  # stretches that are let pass then
        self._random = Random(0)  # its own stream: the program's is not touched
        self._done = []

    def open(self):
        """A border has passed: perhaps mark what follows. Whether the next border is to be told of."""
        if perf_counter_ns() < self._rests_until:
            self._passes = self._random.randint(0, _MOST_PASSED)
            return False
        if self._passes or self._capturing():  # even asking after an event would spoil the program's graph
            self._passes = max(self._passes - 1, 0)
            return True
        self._read()
        if len(self._waiting) < _MOST_WAITING:
            self._opened = perf_counter_ns()
            self._cost = 0
            self._log.mark = self._mark
            self._began = self._mark()
            self._log.events.append((self._began, MARKS_IN))
        return True

    def close(self):
        """A border comes."""
        if self._began is None:
            return
        began = self._began
        self._log.events.append((self._mark(), MARKS_OUT))
        if self._began is not None:  # the last mark could be made
            self._waiting.append((began, self._marks))
            self._marked += 1
            self._rests_until = self._opened + int(self._cost / (_SHARE if self._marked < _MANY else _SHARE_THEN))
        self._stop()

    def end(self):
        """The program ends: read what is done by now."""
        try:
            if not self._capturing():
                self._read()
        except Exception:
            pass  # CUDA may be gone by now

    def take(self):
        """The stretches since the last call, packed. Called by the thread that writes."""
        done, self._done = self._done, []
        return b"".join(done)

    def _mark(self):
        """The time, with a mark on the GPU's clock; the log's `mark`."""
        now = perf_counter_ns()
        if self._log.mark != self._mark:
            return now
        try:
            if self._capturing() or len(self._marks) >= _MOST_MARKS:  # else it would become part of the graph
                self._pool += self._marks
                self._stop()
                return now
            event = self._pool.pop() if self._pool else self._event(enable_timing=True)
            event.record()
            self._marks.append(event)
        except Exception:
            self._stop()
        self._cost += perf_counter_ns() - now
        return now

    def _stop(self):
        self._log.mark = None
        self._marks = []
        self._began = None

    def _read(self):
        while self._waiting and self._waiting[0][1][-1].query():
            began, marks = self._waiting.popleft()
            between = array("f", [a.elapsed_time(b) for a, b in pairwise(marks)])
            self._done.append(MARKS.pack(began, len(between)) + between.tobytes())
            self._pool += marks
