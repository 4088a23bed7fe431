"""Naps: where steps are short and all alike, only some of them are looked at closely.

A hook costs what it costs with cold caches, however little it does: of a short step, all of them together are too much.
So once many steps have been alike, most hooks are taken out for a while, at no cost at all. In a nap, batches, waiting
for them, blocking calls, logging and optimizer steps are told as always; the rest of a step is told as a whole, and the
replay divides it as it was divided in the steps before. Around each look at the stack it is awake for some steps.

Steps are alike while each batch has one backward pass and one optimizer step, and the model is called for nothing else.
What may change that wakes it: a pass over data that ends or begins, another thread, a step that takes long.
"""

from time import perf_counter_ns

from .wire import (
    ADOPTED,
    BACKWARD_OUT,
    FAILED,
    IN,
    KIND,
    MODEL_IN,
    NAP_IN,
    NAP_OUT,
    NAP_STEP,
    NEXT_FRESH_IN,
    NEXT_IN,
    NEXT_OUT,
    RECOMPUTE,
    SHIFT,
    STEP_OUT,
    WINDOW_IN,
    WITH_GRAD,
)

SHORT = 20e6  # nanoseconds: of a longer step, hooks are less than 1 %
ALIKE = 300  # steps, before it first naps; twice as many after each surprise
AWAKE = 3  # steps that are looked at closely between two naps
# Steps that a nap is to last, at first and at most, and which share of all that were napped through: going to sleep and
# waking up cost some too, but in a short run the steps that are looked at must not be too few.
NAP = (30, 400, 0.1)
LONGEST = 2.0  # seconds
BETWEEN = 1  # the same where a pass over data has ended: by then it is known whether the next one trains
# A step that is so many times as long as others, and as many nanoseconds, may hide what has not been seen before.
LONG, LONG_AT_LEAST = 20, 10**8
PATIENCE = 20_000  # steps in which so many must have been alike once; else it gives up
_SMOOTHING = 0.05  # what the last step adds to the mean
_NEXT = (NEXT_IN, NEXT_FRESH_IN)
_IN_NAP = frozenset((NEXT_IN, NEXT_OUT, NAP_STEP))  # where nothing else was logged, a nap went on
_SURPRISES = frozenset((ADOPTED, FAILED, WINDOW_IN, IN + RECOMPUTE))


class Naps:
    """Whether the training thread's hooks are out, and whether they may be."""

    def __init__(self, log):
        self._log = log
        self._hooks = []  # that are taken out
        self._has_given_up = False
        self.is_asleep = False
        self.forget()

    def add(self, *hooks):
        """Hooks that rest in a nap: they have `rest` and `reset`."""
        self._hooks += hooks

    def forget(self):
        """Nothing has been seen. In a forked child, the hooks may be out."""
        self.wake()
        self.is_regular = False  # whether steps are short and alike
        self._is_called = False  # to wake at the next border
        self._next = 0  # backward passes after which it naps
        self._stepped = 0  # when the last step of a nap ended, of those that were judged
        self._mean = 0.0  # nanoseconds of a step
        self._napped = 0  # steps in naps
        self._alike = self._seen = 0  # steps on end that were, and all of them since the last that was regular
        self._enough = ALIKE
        self._forget_row()

    def give_up(self):
        """No more naps, for good."""
        self._has_given_up = True
        self.is_regular = False

    # -- on the thread that writes ------------------------------------------------------------------------------

    def judge(self, events):
        """Take in what has been logged: is each step like the one before it?"""
        if self._has_given_up:
            return
        if self.is_regular and {word & KIND for _, word in events} <= _IN_NAP:
            for now in [now for now, word in events if word & KIND == NAP_STEP]:
                self._judge_unseen(now)
        else:
            self._judge_each(events)
        self.is_regular = self._alike >= self._enough and self._mean < SHORT
        if self.is_regular:
            self._seen = 0
        elif self._seen > max(PATIENCE, 2 * self._enough):
            self.give_up()

    def _judge_each(self, events):
        for now, word in events:
            kind = word & KIND
            if kind in _NEXT:
                self._end_row(now)
            elif kind == BACKWARD_OUT:
                self._backwards += 1
            elif kind == STEP_OUT:
                self._steps += 1
            elif kind == MODEL_IN:
                self._evaluates |= not word >> SHIFT & WITH_GRAD
            elif kind == NAP_STEP:
                self._judge_unseen(now)
            elif kind == NAP_IN:
                self._stepped = now
                self._forget_row()
            elif kind in _SURPRISES:
                self._is_odd = True

    def _end_row(self, now):
        began, backwards, steps = self._began, self._backwards, self._steps
        is_odd = self._is_odd or (backwards, steps) not in ((1, 1), (0, 0)) or (backwards and self._evaluates)
        self._forget_row()
        self._began = now
        if began is None:
            return
        self._seen += 1
        if is_odd:
            self._alike = 0
        elif steps:
            self._alike += 1
            self._mean += (now - began - self._mean) * (_SMOOTHING if self._mean else 1)

    def _judge_unseen(self, now):
        """A step of a nap: did it take long?"""
        if now - self._stepped > max(LONG * self._mean, LONG_AT_LEAST):
            self._start_over()
        self._stepped = now
        self._napped += 1

    def _start_over(self):
        self._alike = 0
        self._enough *= 2

    def _forget_row(self):
        self._began = None  # when the row began; None in a nap
        self._backwards = self._steps = 0
        self._is_odd = self._evaluates = False

    # -- on the thread that looks -------------------------------------------------------------------------------

    def seconds(self):
        """How long a nap is to last; 0 where there are none."""
        if not self.is_regular:
            return 0.0
        first, most, share = NAP
        return min(min(max(share * self._napped, first), most) * self._mean * 1e-9, LONGEST)

    def call(self):
        """Wake at the next border. Nanoseconds after which it is awake for sure, and until it naps again."""
        self._is_called = True
        self._log.attend = self._log.at_border
        return self._mean, AWAKE * self._mean

    # -- on the training thread ---------------------------------------------------------------------------------

    def must_wake(self):
        return self._is_called or not self._may_rest()

    def is_due(self, word):
        """A border has passed: is it time for a nap?"""
        return self._log.backwards >= self._next and word & KIND == NEXT_IN and self._may_rest()

    def _may_rest(self):
        log = self._log
        is_free = log.stop_at is None and log.window is None and log.counting is None and log.due is None
        return is_free and log.alone and self.is_regular

    def begin(self):
        """Take the hooks out."""
        for hooks in self._hooks:
            hooks.rest()
        self.is_asleep = True
        self._log.events.append((perf_counter_ns(), NAP_IN))

    def wake(self, steps=AWAKE):
        """Put the hooks back, if they are out, for so many steps at least."""
        if self.is_asleep:
            for hooks in self._hooks:
                hooks.reset()
            self.is_asleep = self._is_called = False
            log = self._log
            self._next = log.backwards + steps
            log.attend = log.at_border  # the next nap begins there
            log.events.append((perf_counter_ns(), NAP_OUT))

    def surprised(self):
        """Something has happened in a nap that should have been looked at."""
        self.wake()
        self.is_regular = False
        self._start_over()
