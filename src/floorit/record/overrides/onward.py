"""Workers that go on with the next pass: while the program ends one, evaluates and saves, they make its first batches.

Which samples those are is decided by random numbers that the program has yet to come to: how far it moves its streams
until the next pass is learnt from the passes before, the order is drawn as from there, and the streams are put back.
What was begun so is handed out only where the streams are then found just there; else the pass begins as without us.
"""

import functools
import weakref
from itertools import chain, islice

from ..known import Known
from ..traces import hide_ours, is_from_signal
from .order import Order, obstacle

_ALL_ASKED_FOR, _ENDED = "all asked for", "ended"  # moments of a pass: its last batch is being made; was handed out
_VAIN = 2  # passes that were begun in vain at a moment, one after the other: no more are
_UNTOLD = "no pass has followed on two others yet, or what is drawn of random numbers in between is not foreseen"


class Onward:
    """The iterators whose workers are kept and go on."""

    def __init__(self, session, applied):
        self._torch = session.torch
        self._assign = session.patches.assign
        self._applied = applied
        self._readings = Known()

    def follow(self, loader, iterator):
        """The iterator of a loader is made, which keeps it."""
        order = Order(self._torch, loader)
        reason = obstacle(loader) or order.hidden()
        self._applied.unmet(reason or _UNTOLD)
        if reason is None and id(iterator) not in self._readings:
            reading = self._readings.learn(iterator, _Reading(order))
            itself = weakref.ref(iterator)  # it has these: would they have it, its workers would outlive it
            for name, ours in (("_next_index", self._ask), ("_next_data", self._hand_out), ("_reset", self._begin)):
                self._assign(iterator, name, functools.partial(ours, reading, itself))

    def is_between_passes(self, iterator):
        """Whether a pass is over although its workers make batches."""
        reading = self._readings.get(id(iterator))
        return reading is not None and reading.is_over(iterator)

    def _ask(self, reading, itself):
        """Stands in for `_next_index`."""
        iterator = itself()
        try:
            return next(iterator._sampler_iter)
        except StopIteration:
            if not self._tried(reading.reaches, iterator, _ALL_ASKED_FOR):
                raise
        return next(iterator._sampler_iter)

    def _hand_out(self, reading, itself):
        """Stands in for `_next_data`."""
        iterator = itself()
        try:
            if not reading.is_over(iterator):
                return type(iterator)._next_data(iterator)
        except StopIteration:
            pass
        except BaseException:
            hide_ours()
            raise
        if self._tried(reading.reaches, iterator, _ENDED):
            for _ in range(iterator._prefetch_factor * iterator._num_workers):
                iterator._try_put_index()
        raise StopIteration

    def _begin(self, reading, itself, loader, first_iter=False):
        """Stands in for `_reset`."""
        iterator = itself()
        if self._tried(reading.goes_on, iterator):
            iterator._num_yielded = 0
            self._applied.act()
            return
        try:
            type(iterator)._reset(iterator, loader, first_iter)
        except BaseException:
            hide_ours()
            raise

    def _tried(self, ask, *args):
        try:
            return ask(*args)
        except Exception as error:
            if is_from_signal(error):
                raise
            self._applied.fail("the next pass could not be begun: %r" % (error,))
            return False


class _Begun:
    """A pass that was begun before it was asked for."""

    __slots__ = ("after", "drawn_from", "moment", "there")

    def __init__(self, moment, there, after, drawn_from):
        self.moment = moment
        self.there = there  # the state of the order that it was begun from
        self.after = after  # and that it left
        self.drawn_from = drawn_from  # of each stream, whether it was


class _Reading:
    """How far one iterator is, and what is known of the way from its passes' ends to their beginnings."""

    def __init__(self, order):
        self._order = order
        self._left = {}  # moment of this pass -> the state of the order then
        self._moves = {}  # moment -> from there to the next pass, as it was last time
        self._vain = dict.fromkeys((_ALL_ASKED_FOR, _ENDED), 0)
        self._begun = None  # what of the next pass has begun
        self._border = None  # number of its first batch

    def is_over(self, iterator):
        """Whether what comes next belongs to the next pass, which has begun."""
        return self._begun is not None and iterator._rcvd_idx == self._border

    def reaches(self, iterator, moment):
        """Whether the next pass begins now: `iterator` is at a moment of this one."""
        if self._begun is not None or moment in self._left:
            return False
        here = self._left[moment] = self._order.now()
        move = self._moves.get(moment)
        if move is None or self._vain[moment] >= _VAIN:
            return False
        there = self._order.moved(here, move)
        try:
            self._order.put(there)
            samples = iter(iterator._index_sampler)
            # As many as workers take before any is handed out: in a pass that begins, their order is drawn at once.
            asked = list(islice(samples, iterator._prefetch_factor * iterator._num_workers))
            after = self._order.now()
        finally:
            self._order.put(here)
        drawn_from = self._order.drawn_from(there, after)
        if not asked or not self._order.tells(move, drawn_from):
            self._vain[moment] += 1
            return False
        self._begun = _Begun(moment, there, after, drawn_from)
        self._border = iterator._send_idx
        iterator._sampler_iter = chain(asked, samples)
        return True

    def goes_on(self, iterator):
        """Whether the pass that is asked for is the one that has begun."""
        is_over, begun, self._begun = self.is_over(iterator), self._begun, None
        now = self._order.now()
        self._moves.update({moment: self._order.move(left, now) for moment, left in self._left.items()})
        self._left.clear()
        if begun is None:
            return False
        if not is_over or not self._order.are_equal(now, begun.there, of_streams=begun.drawn_from):
            self._vain[begun.moment] += 1
            return False
        self._vain[begun.moment] = 0
        self._order.put(begun.after, of_streams=begun.drawn_from)
        return True
