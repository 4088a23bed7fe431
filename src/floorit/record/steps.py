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


# Where a row being filled has what: the columns of wire.ROW between its end and its seconds.
ITERATOR, SAMPLES, OPTIMIZERS, BACKWARDS, OPENED, FLAGS, READY, STEPS = range(8)


class Steps:
    """Rows, in the order in which they end."""

    def __init__(self, clock):
        self.clock = clock
        self.stop_at = None  # backward calls after which the program is to end
        self._rows = []  # (end, columns, nanoseconds by phase)
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
        self.row = [0, 0, 0, 0, START, 0, NO_QUEUE, 0]
        # (when, what had been spent by then, backward passes) of the last training and the first step in this row
        self._worked = self._stepped = None

    @property
    def iterator(self):
        """The pass over the data that the open row belongs to."""
        return self.row[ITERATOR]

    def batch(self, iterator):
        """A batch is asked for."""
        self._cut(BATCH, iterator)
        self._batch_since_step = self._border_since_backward = True

    def join(self, iterator):
        """Begin in the middle of an iteration, with its batch taken."""
        self.row[OPENED], self.row[ITERATOR] = BATCH, iterator
        self._batch_since_step = self._border_since_backward = True

    def exhausted(self):
        """The batch asked for last did not come: its row is what lies between two passes over the data."""
        self.row[OPENED] = EXHAUSTED

    def stepped(self, optimizer):
        """An optimizer has made a step."""
        row, bit = self.row, 1 << min(optimizer, 31)
        if row[OPTIMIZERS] & bit:  # its second since the batch: the batch is not what makes the steps
            row = self._split(self._stepped, OPTIMIZER_STEP)
        row[OPTIMIZERS] |= bit
        row[STEPS] += 1
        self._border_since_backward = True
        if self._batch_since_step:
            self._batch_since_step = False
            self._worked = self._stepped = (self.clock.since, self.clock.spent[:], row[BACKWARDS])
        else:
            self._cut(OPTIMIZER_STEP, row[ITERATOR])

    def went_backward(self):
        """A backward pass has ended."""
        row = self.row
        row[BACKWARDS] += 1
        self.backwards_ever += 1
        if self._border_since_backward:
            self._border_since_backward = False
            self._worked = (self.clock.since, self.clock.spent[:], row[BACKWARDS])
        else:
            self._cut(BACKWARD_CALL, row[ITERATOR])

    def close(self):
        """The program ends: what came after the last training in an open row is not part of its iteration."""
        if self._worked is not None:
            self._split(self._worked, EXHAUSTED)
        self._cut(START, 0)

    def _split(self, moment, opened):
        """End the open row at an earlier moment; what came since belongs to a row that began then."""
        ended, before, backwards = moment
        before[self.clock.base] += before[PENDING]
        before[PENDING] = 0
        row = self.row
        since = [row[ITERATOR], row[SAMPLES], 0, row[BACKWARDS] - backwards, opened, 0, NO_QUEUE, 0]
        row[BACKWARDS] = backwards
        self._rows.append((ended, row, before))
        self.number += 1
        spent = self.clock.spent
        spent[:] = [total - part for total, part in zip(spent, before)]
        self.row = since
        return since

    def _cut(self, opened, iterator):
        spent, now = self.clock.cut()
        if self.clock.device is not None:
            self.clock.device.cut(self.number)
        length = now - self._ended
        if length > 2 * self._length or self.number < _FIRST_ROWS:  # compiling takes long: else there was none
            self._look_for_compilation()
        self._ended, self._length = now, length
        self._rows.append((now, self.row, spent))
        self.row = [iterator, 0, 0, 0, opened, 0, NO_QUEUE, 0]
        self._worked = self._stepped = None
        self.number += 1
        if self.stop_at is not None and self.backwards_ever >= self.stop_at:
            self.stop_at = None
            raise SystemExit(0)

    def _look_for_compilation(self):
        compiled = _compilations()
        if compiled != self._compiled:
            self._compiled = compiled
            self.row[FLAGS] |= COMPILED

    def take(self):
        """The rows since the last call, packed. Called by the thread that writes."""
        count = len(self._rows)
        rows = self._rows[:count]
        del self._rows[:count]
        return [_packed(*row) for row in rows]


def _packed(now, row, spent):
    iterator, samples, optimizers, backwards, opened, flags, ready, steps = row
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
