"""Borders of the training loop, and the row of numbers that each stretch between two of them leaves behind.

A batch asked of a loader is always a border. The end of an optimizer step is one if no batch came since the last
step, the end of a backward pass if neither did: so a program without a loader, or without torch.optim, has borders
too, and one that has them all leaves one row an iteration. What an iteration is, the analysis decides.
"""

import sys

from .wire import (
    BACKWARD_CALL,
    BATCH,
    COMPILED,
    EXHAUSTED,
    NO_QUEUE,
    OPTIMIZER_STEP,
    PENDING,
    PHASES,
    ROW,
    START,
)

_MOST_SAMPLES = 0xFFFFFFFF
_MOST = 0xFFFF
_FIRST_ROWS = 10  # in which compilation is looked for, whatever their length


class Steps:
    """Rows, in the order in which they end."""

    def __init__(self, clock):
        self.clock = clock
        self.stop_at = None  # backward calls after which the program is to end
        self._rows = []
        self.reset()

    def reset(self):
        """Forget everything: a forked child begins anew."""
        del self._rows[:]
        self.number = 0
        self.backwards_ever = 0
        self._batch_since_step = self._border_since_backward = False
        self._compiled = _compilations()
        self._ended = self.clock.started
        self._length = 0
        self._open(START, 0)

    def _open(self, opened, iterator):
        self.opened = opened
        self.iterator = iterator
        self.samples = 0
        self.optimizers = 0
        self.backwards = 0
        self.flags = 0
        self.ready = NO_QUEUE
        self.steps = 0
        # (when, what had been spent by then, backward passes) of the last training and the first step in this row
        self._worked = self._stepped = None

    def batch(self, iterator):
        """A batch is asked for."""
        self._cut(BATCH, iterator)
        self._batch_since_step = self._border_since_backward = True

    def join(self, iterator):
        """Begin in the middle of an iteration, with its batch taken."""
        self.opened, self.iterator = BATCH, iterator
        self._batch_since_step = self._border_since_backward = True

    def exhausted(self):
        """The batch asked for last did not come: its row is what lies between two passes over the data."""
        self.opened = EXHAUSTED

    def stepped(self, optimizer):
        """An optimizer has made a step."""
        bit = 1 << min(optimizer, 31)
        if self.optimizers & bit:  # its second since the batch: the batch is not what makes the steps
            self._split(self._stepped, steps=self.steps, optimizers=self.optimizers, opened=OPTIMIZER_STEP)
            self.steps = self.optimizers = 0
        self.optimizers |= bit
        self.steps += 1
        self._border_since_backward = True
        if self._batch_since_step:
            self._batch_since_step = False
            self._worked = self._stepped = (self.clock.since, self.clock.spent[:], self.backwards)
        else:
            self._cut(OPTIMIZER_STEP, self.iterator)

    def went_backward(self):
        """A backward pass has ended."""
        self.backwards += 1
        self.backwards_ever += 1
        if self._border_since_backward:
            self._border_since_backward = False
            self._worked = (self.clock.since, self.clock.spent[:], self.backwards)
        else:
            self._cut(BACKWARD_CALL, self.iterator)

    def close(self):
        """The program ends: what came after the last training in an open row is not part of its iteration."""
        if self._worked is not None:
            self._split(self._worked, steps=self.steps, optimizers=self.optimizers, opened=EXHAUSTED)
            self.steps = self.optimizers = 0
        self._cut(START, 0)

    def _split(self, moment, steps, optimizers, opened):
        """End the open row at an earlier moment; what came since belongs to a row that began then."""
        ended, before, backwards = moment
        before[self.clock.base] += before[PENDING]
        before[PENDING] = 0
        self._rows.append(
            (
                ended,
                self.iterator,
                self.samples,
                optimizers,
                backwards,
                self.opened,
                self.flags,
                self.ready,
                steps,
                before,
            )
        )
        self.number += 1
        spent = self.clock.spent
        spent[:] = [total - part for total, part in zip(spent, before)]
        self.opened, self.flags, self.ready = opened, 0, NO_QUEUE
        self.backwards -= backwards

    def _cut(self, opened, iterator):
        spent, now = self.clock.cut()
        if self.clock.device is not None:
            self.clock.device.cut(self.number)
        length, self._ended = now - self._ended, now
        if length > 2 * self._length or self.number < _FIRST_ROWS:  # compiling takes long: else there was none
            self._look_for_compilation()
        self._length = length
        row = (
            now,
            self.iterator,
            self.samples,
            self.optimizers,
            self.backwards,
            self.opened,
            self.flags,
            self.ready,
            self.steps,
            spent,
        )
        self._rows.append(row)
        self.number += 1
        self._open(opened, iterator)
        if self.stop_at is not None and self.backwards_ever >= self.stop_at:
            self.stop_at = None
            raise SystemExit(0)

    def _look_for_compilation(self):
        compiled = _compilations()
        if compiled != self._compiled:
            self._compiled = compiled
            self.flags |= COMPILED

    def take(self):
        """The rows since the last call, packed. Called by the thread that writes."""
        count = len(self._rows)
        rows = self._rows[:count]
        del self._rows[:count]
        return [_packed(*row) for row in rows]


def _packed(now, iterator, samples, optimizers, backwards, opened, flags, ready, steps, spent):
    return ROW.pack(
        now * 1e-9,
        iterator,
        min(samples, _MOST_SAMPLES),
        optimizers,
        min(backwards, _MOST),
        opened,
        flags,
        min(ready, _MOST),
        min(steps, _MOST),
        *[nanoseconds * 1e-9 for nanoseconds in spent[: len(PHASES)]],
    )


def _compilations():
    """How many frames torch.compile has compiled so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return counters.get("frames", {}).get("total", 0) if counters else 0
