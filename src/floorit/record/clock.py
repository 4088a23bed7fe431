"""Exclusive time: at any moment the training thread is in exactly one phase.

Each border adds what has passed to the phase that ends there, so the phases of a stretch add up to its wall time by
construction. Some time can only be named by what follows it. It is booked as PENDING and settled at the next
border: the code after a forward pass is the loss if a backward pass follows, and the code since the batch arrived is
the forward pass itself if no module was called before the backward.

These methods run many times a step, each with cold caches: they call as little as they can.
"""

from threading import get_ident
from time import perf_counter_ns

from .wire import BACKWARD, FORWARD, LOSS, OPTIMIZER, OTHER, PENDING, PHASES, RECOMPUTE

_BASES = (OTHER, OPTIMIZER, PENDING)
_NOTHING = [0] * (len(PHASES) + 1)


class PhaseClock:
    """The phases of one thread. Nanoseconds."""

    __slots__ = (
        "base",
        "becomes",
        "current",
        "device",
        "pending_samples",
        "since",
        "spent",
        "stack",
        "started",
        "thread",
    )

    def __init__(self):
        self.device = None  # an EventTrack, once CUDA is in use
        self.pending_samples = []  # stack samples taken while PENDING
        self.reset()

    def reset(self):
        """Start anew, in the thread that calls."""
        self.thread = get_ident()
        self.spent = _NOTHING[:]
        self.stack = []
        self.base = OTHER  # what PENDING becomes when no backward follows
        self.becomes = FORWARD  # what it becomes when one does
        self.current = PENDING
        self.since = self.started = perf_counter_ns()
        del self.pending_samples[:]

    def enter(self, phase, thread=None):
        """Begin a phase inside the current one; returns what `leave` needs, or None in a thread not accounted for.

        `thread` stands for the calling one where that works for the one that trains.
        """
        if (thread or get_ident()) != self.thread:
            return None
        now = perf_counter_ns()
        current = self.current
        self.spent[current] += now - self.since
        self.since = now
        if self.device is not None:
            self.device.mark(current)
        self.stack.append(current)
        self.current = phase
        return len(self.stack)

    def leave(self, depth):
        """End the phase that `enter` began, and any left open inside it by an exception."""
        stack = self.stack
        if len(stack) < depth:
            return
        now = perf_counter_ns()
        current = self.current
        self.spent[current] += now - self.since
        self.since = now
        if self.device is not None:
            self.device.mark(current)
        self.current = stack[depth - 1]
        del stack[depth - 1 :]

    def leaf(self, phase, started):
        """Book what has passed since `started` to a phase in which no other began."""
        now = perf_counter_ns()
        since = self.since
        if started > since:
            self.spent[self.current] += started - since
            since = started
        self.spent[phase] += now - since
        self.since = now

    def enter_settling(self, phase, loss_known=False):
        """Begin a pass over the model or a step, which says what was pending before it.

        Before a backward pass it was the loss, unless that came out of the forward pass; else it was neither.
        """
        now = perf_counter_ns()
        current, spent = self.current, self.spent
        pending_is = self.base
        if phase == BACKWARD and current == PENDING and not (loss_known and self.becomes == LOSS):
            pending_is = self.becomes
        spent[current] += now - self.since
        self.since = now
        if self.device is not None:
            self.device.mark(current)
        spent[pending_is] += spent[PENDING]
        spent[PENDING] = 0
        if self.pending_samples or self.device is not None:
            self._settled(pending_is)
        self.stack.append(self.base if current == PENDING else current)
        self.current = phase
        return len(self.stack)

    def leave_forward(self, depth):
        """End a forward pass. From here on, time is the loss, if a backward follows."""
        self.leave(depth)
        if self.current in _BASES:
            if self.current != PENDING:
                self.base = self.current
            self.current, self.becomes = PENDING, LOSS

    def unwind(self):
        """At the top of the loop, drop an optimizer step that an exception left open."""
        if self.stack and self.current == OPTIMIZER and not any(phase not in _BASES for phase in self.stack):
            self.leave(1)

    def in_backward(self):
        """Whether the training thread is inside a backward pass, where the engine's threads work for it."""
        return self.current == BACKWARD or self.current == RECOMPUTE or BACKWARD in self.stack

    def cut(self):
        """Close the stretch: its nanoseconds by phase, and the time now.

        From here on, time is the forward pass of a program without modules, if a backward follows.
        """
        now = perf_counter_ns()
        current, spent = self.current, self.spent
        spent[current] += now - self.since
        self.since = now
        if self.device is not None:
            self.device.mark(current)
        spent[self.base] += spent[PENDING]
        spent[PENDING] = 0
        if self.pending_samples or self.device is not None:
            self._settled(self.base)
        if current == PENDING:
            current = self.current = self.base
        if current == OTHER and not self.stack:
            self.current, self.base, self.becomes = PENDING, OTHER, FORWARD
        self.spent = _NOTHING[:]
        return spent, now

    def _settled(self, phase):
        """What was pending has a name now: tell the others."""
        if self.device is not None:
            self.device.resolve(phase)
        if self.pending_samples:
            taken, self.pending_samples = self.pending_samples, []
            for add, *where in taken:
                add(phase, *where)
