"""What the training thread did, as pairs of a time and a word (see wire): written now, understood later.

Hooks run many times a step with cold caches, so all they do is add such a pair. Nothing about phases, iterations or
losses is decided in the program's process; `floorit.replay` does that outside. For the same reason the probes of
batches, steps, forward and backward passes have what `add` does in them instead of a call, and no hot line calls an
attribute that is not a method: Python looks those up the slow way.
"""

from itertools import chain
from struct import pack
from threading import get_ident
from time import perf_counter_ns

from .naps import Naps
from .wire import END, KIND, LEAF, LOG, NEXT_FRESH_IN, NEXT_IN, SHIFT

_NEXT = (NEXT_IN, NEXT_FRESH_IN)


class Log:
    """The events of one thread. A pair is added as one object, so other threads find whole pairs."""

    __slots__ = (
        "_written",
        "alone",
        "anomaly",
        "attend",
        "backward",
        "backwards",
        "batch_came",
        "batches",
        "border_came",
        "counting",
        "due",
        "events",
        "ident",
        "is_stopped",
        "lines",
        "mark",
        "marker",
        "naps",
        "settle",
        "started",
        "stop_at",
        "thread",
        "window",
    )

    def __init__(self):
        self.events = []  # (time, word); not an array, whose code is in a library of its own, cold when a hook needs it
        self._written = 0
        self.ident = get_ident
        self.alone = False  # whether no other thread calls what is hooked; asking which one runs takes long
        self.anomaly = False  # whether anomaly detection is on; so does asking torch
        self.lines = None  # a LineTrack
        self.marker = None  # an EventTrack, once CUDA is in use
        self.naps = Naps(self)
        self.stop_at = None  # backward passes after which the program is to end
        self.is_stopped = False  # whether it was ended so
        self.window = None  # a Window, from when one is asked for to when it is over
        self.counting = None  # a Counting, in a floor run, until it is over
        self.settle = None  # called at the next border, unless it is None; it sets that
        self.reset()

    def reset(self):
        """Start anew, in the thread that calls."""
        del self.events[:]
        self.mark = None  # while a stretch is marked: called for the time, and marks it
        self.attend = self.at_border  # called at a border instead of `extend`, unless it is None
        self.thread = get_ident()
        self.started = perf_counter_ns()
        self.due = None  # to be called once, at the next border at which there is time
        self.backward = 0  # how many passes are open, one inside the other
        self.backwards = 0
        self.batches = 0
        # A batch is always a border of the loop; the end of a step is one if no batch came since the last; the end of
        # a backward pass, if no step did either.
        self.batch_came = False  # since the last step
        self.border_came = False  # since the last backward pass

    def add(self, word):
        """Something happens now."""
        self.events.append((perf_counter_ns() if self.mark is None else self.mark(), word))

    def leaf(self, phase, started):
        """A phase in which no other began has lasted since `started`."""
        lines = self.lines
        now = self.mark() if lines is not None and lines.is_open else perf_counter_ns()
        self.events.append((now, (now - started) << SHIFT | LEAF + phase))

    def at_border(self, word):
        """A border at which the stretch before may have been marked, or the one after is to be, or the program ends."""
        if self.settle is not None:
            self.settle()
        marker, lines, window, naps = self.marker, self.lines, self.window, self.naps
        if naps.is_asleep:
            if not naps.must_wake():
                self.events.append((perf_counter_ns(), word))
                self.attend = None  # until the next flush or look
                return
            naps.wake()
        if marker is not None:
            marker.close()
        self.mark = None
        now = perf_counter_ns()
        is_over = self.stop_at is not None and self.backwards >= self.stop_at
        if not is_over or word & KIND not in _NEXT:  # a batch that is never handed out begins no step
            self.events.append((now, word))
        if self.due is not None:
            due, self.due = self.due, None
            due()
        if is_over:
            self.stop_at = None
            self.is_stopped = True
            raise SystemExit(0)
        if self.counting is not None and self.counting.at_border(now, word):
            lines.is_open = False
            return
        if window is not None and window.at_border(now):
            lines.follow(now)  # and no marks: they would be kernels' neighbours in the trace
            return
        if naps.is_regular and naps.is_due(word):
            lines.is_open = False
            self.attend = None
            naps.begin()
            return
        if lines is not None and lines.wanted and (marker is None or not lines.is_open):
            lines.open(now)
            return
        if lines is not None:
            lines.is_open = False
        is_marking = marker is not None and marker.open()
        has_plans = is_marking or naps.is_regular or self.stop_at is not None
        if not has_plans and self.window is None and self.counting is None:
            self.attend = None  # until the next flush or, where there are marks to make, look

    def end(self):
        """The program ends."""
        self.events.append((perf_counter_ns(), END))

    def take(self):
        """The events since the last call, as bytes. Called by the thread that writes."""
        taken = self.events[:]
        if not taken:
            return b""
        del self.events[: len(taken)]
        self.naps.judge(taken)
        before, self._written = self._written, self._written + 2 * len(taken)
        numbers = list(chain.from_iterable(taken))
        return LOG.pack(before) + pack("%dq" % len(numbers), *numbers)  # half the time that an array takes
