"""The same borders on the GPU's clock: CUDA events from a pool, read when they are done, never waited for.

Where a step is short, only some rows are marked, so that the marks cost at most half a percent.
"""

from collections import deque
from itertools import pairwise
from time import perf_counter_ns

from .wire import DEVICE_ROW, PENDING, PHASES

_SHARE = 0.005  # of a row's host time that its marks may cost, on average
_MOST_BETWEEN = 100  # rows from one marked to the next
_MOST_WAITING = 64  # rows whose events are not done yet


class EventTrack:
    """Device seconds of the marked rows."""

    def __init__(self, torch):
        self._event = torch.cuda.Event
        self._capturing = torch.cuda.is_current_stream_capturing
        self._pool = []
        self._waiting = deque()
        self._marks = []  # [phase that ended here, event]; the first only starts the row
        self._active = False
        self._cost = 0
        self._started = perf_counter_ns()
        self._next = 0
        self._rows = []
        self.dropped = 0

    def mark(self, phase):
        """A phase ends here."""
        if not self._active:
            return
        before = perf_counter_ns()
        if self._capturing():  # an event would become part of the program's graph
            self._drop()
            return
        event = self._pool.pop() if self._pool else self._event(enable_timing=True)
        event.record()
        self._marks.append([phase, event])
        self._cost += perf_counter_ns() - before

    def resolve(self, phase):
        """What was pending has a name now."""
        for mark in self._marks:
            if mark[0] == PENDING:
                mark[0] = phase

    def cut(self, number):
        """A row ends. While a CUDA graph is being captured, even asking after an event would spoil the capture."""
        if self._capturing():
            self._drop()
            return
        now = perf_counter_ns()
        if self._active:
            self._waiting.append((number, self._marks))
            allowed = (now - self._started) * _SHARE
            self._next = number + 1 + min(_MOST_BETWEEN, int(self._cost / max(allowed, 1)))
        self._marks = []
        self._read()
        self._active = number + 1 >= self._next and len(self._waiting) < _MOST_WAITING
        self._started, self._cost = now, 0
        self.mark(PENDING)

    def take(self):
        """The rows since the last call, packed. Called by the thread that writes."""
        count = len(self._rows)
        rows = self._rows[:count]
        del self._rows[:count]
        return rows

    def _drop(self):
        self._pool += [event for _, event in self._marks]
        self._marks = []
        self._active = False
        self.dropped += 1

    def _read(self):
        while self._waiting and self._waiting[0][1][-1][1].query():
            number, marks = self._waiting.popleft()
            seconds = [0.0] * (len(PHASES) + 1)
            for (_, before), (phase, event) in pairwise(marks):
                seconds[phase] += before.elapsed_time(event) * 1e-3
            self._rows.append(DEVICE_ROW.pack(number, *seconds[: len(PHASES)]))
            self._pool += [event for _, event in marks]
