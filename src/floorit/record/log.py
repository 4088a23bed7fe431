"""What the training thread did, as pairs of a time and a word (see wire): written now, understood later.

Hooks run many times a step with cold caches, so all they do is add such a pair. Nothing about phases, iterations or
losses is decided in the program's process; `floorit.replay` does that outside. For the same reason the probes of
batches, steps and backward passes each have the three lines of a border in them instead of a call.
"""

from array import array
from threading import get_ident
from time import perf_counter_ns

from .wire import END, LEAF, LOG, SHIFT


class Log:
    """The events of one thread. Adding a pair is one call of C code, so other threads find whole pairs."""

    __slots__ = (
        "_events",
        "_written",
        "alone",
        "anomaly",
        "attend",
        "backward",
        "backwards",
        "batch_came",
        "batches",
        "border_came",
        "due",
        "extend",
        "ident",
        "lines",
        "marker",
        "now",
        "started",
        "stop_at",
        "thread",
        "window",
    )

    def __init__(self):
        self._events = []  # not an array: its code is in a library of its own, which is cold when a hook needs it
        self._written = 0
        self.extend = self._events.extend  # ((time, word))
        self.ident = get_ident
        self.alone = False  # whether no other thread calls what is hooked; asking which one runs takes long
        self.anomaly = False  # whether anomaly detection is on; so does asking torch
        self.lines = None  # a LineTrack
        self.marker = None  # an EventTrack, once CUDA is in use
        self.stop_at = None  # backward passes after which the program is to end
        self.window = None  # a Window, from when one is asked for to when it is over
        self.reset()

    def reset(self):
        """Start anew, in the thread that calls."""
        del self._events[:]
        self.now = perf_counter_ns  # while a stretch is marked, that marks too
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

    def leaf(self, phase, started):
        """A phase in which no other began has lasted since `started`."""
        lines = self.lines
        now = self.now() if lines is not None and lines.is_open else perf_counter_ns()
        self.extend((now, (now - started) << SHIFT | LEAF + phase))

    def at_border(self, word):
        """A border at which the stretch before may have been marked, or the one after is to be, or the program ends."""
        marker, lines, window = self.marker, self.lines, self.window
        if marker is not None:
            marker.close()
        self.now = perf_counter_ns
        now = perf_counter_ns()
        self.extend((now, word))
        if self.due is not None:
            due, self.due = self.due, None
            due()
        if self.stop_at is not None and self.backwards >= self.stop_at:
            self.stop_at = None
            raise SystemExit(0)
        if window is not None and window.at_border(now):
            lines.follow(now)  # and no marks: they would be kernels' neighbours in the trace
            return
        if lines is not None and lines.wanted and (marker is None or not lines.is_open):
            lines.open()
            return
        if lines is not None:
            lines.is_open = False
        if marker is not None:
            marker.open()
        elif self.stop_at is None and self.window is None:
            self.attend = None

    def end(self):
        """The program ends."""
        self.extend((perf_counter_ns(), END))

    def take(self):
        """The events since the last call, as bytes. Called by the thread that writes."""
        taken = self._events[:]
        if not taken:
            return b""
        del self._events[: len(taken)]
        before, self._written = self._written, self._written + len(taken)
        return LOG.pack(before) + array("q", taken).tobytes()
