"""The program's own line at each event, in a stretch now and then: so that time too short for a look has a line too."""

from time import perf_counter_ns

from .sampler import caller

FIRST = 10  # stretches in which it is done once the program trains
BEFORE = 200  # stretches before that


class LineTrack:
    """The log's `mark` in some stretches between two borders."""

    def __init__(self, log, sampler):
        self._log = log
        self._place = sampler.place
        self.wanted = FIRST  # stretches that are to come
        self.is_open = False  # in the stretch before the next border
        self._before = BEFORE
        self._taken = []  # (time of an event, code, line, whose it is)

    def open(self, border):
        """A border has passed: note its line, and those of the stretch that follows."""
        if self._log.backwards or not self._before:
            self.wanted -= 1
        else:
            self._before -= 1
        self.follow(border)

    def follow(self, border):
        """The same, of a stretch that is not counted."""
        self._note(border)
        self.is_open = True
        self._log.mark = self._now

    def take(self):
        """The lines since the last call: (time, number of the place)."""
        taken, self._taken = self._taken, []
        return [(time, self._place(*where)) for time, *where in taken]

    def _now(self):
        now = perf_counter_ns()
        self._note(now)
        return now

    def _note(self, now):
        frame, kind = caller(3)
        if frame is not None:  # no more than noted here: torch.compile would compile what of the library we call
            self._taken.append((now, frame.f_code, frame.f_lineno, kind))
