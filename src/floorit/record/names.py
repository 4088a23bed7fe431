"""Stretches that the program has named itself, and steps whose end it tells: see `floorit.span` and `floorit.step`.

On the training thread they are events like all others. In a loader's worker, and on other threads, nothing else is
logged: there each name's calls and its own time are added up.
"""

import os
import sys
from threading import get_ident
from time import perf_counter, perf_counter_ns

from .wire import NAMED_IN, NAMED_OUT, SHIFT, STEP_ENDS

NAME = "names of the program's own"
MOST = 1000  # different names that are told apart


class Names:
    """What `floorit.span` and `floorit.step` call in a program that is recorded."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._broken = False
        self.forget()

    def forget(self):
        """In a forked child: nothing was told to its file, and no stretch of the parent's ends here."""
        self._numbers = {}
        self._open = {}  # thread -> stretches that are open, outermost first: name, begin, nanoseconds of those inside
        self._spent = {}  # name -> calls and nanoseconds, since the last flush

    def enter(self, name):
        """A stretch begins."""
        if self._broken:
            return
        try:
            log = self._log
            if get_ident() == log.thread and not self._session.is_worker:
                number = self._numbers.get(name)
                if number is None:
                    number = self._describe(name)
                log.add(number << SHIFT | NAMED_IN)
            else:
                self._open.setdefault(get_ident(), []).append([name, perf_counter_ns(), 0])
        except Exception as error:
            self._fail(error)

    def leave(self, name):
        """It ends."""
        if self._broken:
            return
        try:
            log = self._log
            if get_ident() == log.thread and not self._session.is_worker:
                log.add(self._numbers.get(name, 0) << SHIFT | NAMED_OUT)
            else:
                self._add_up(name)
        except Exception as error:
            self._fail(error)

    def step(self):
        """The program says that a step is over."""
        try:
            log = self._log
            if get_ident() == log.thread and not self._session.is_worker:
                log.naps.give_up()  # what a step is does not rest on what naps watch
                log.add(STEP_ENDS)
        except Exception as error:
            self._fail(error)

    def take(self):
        """Calls and nanoseconds of each name in this process's other threads since the last call."""
        spent, self._spent = self._spent, {}
        return spent

    def tell(self):
        """Note them, if there are any."""
        spent = self.take()
        if spent:
            facts = {"pid": os.getpid(), "worker": self._session.is_worker, "at": perf_counter()}
            self._session.writer.note("named", spent=spent, **facts)

    def _add_up(self, name):
        stretches = self._open.get(get_ident())
        if not stretches or stretches[-1][0] != name:
            return  # it began before this process did
        _, began, inside = stretches.pop()
        lasted = perf_counter_ns() - began
        if stretches:
            stretches[-1][2] += lasted
        else:
            del self._open[get_ident()]
        spent = self._spent.setdefault(name, [0, 0])
        spent[0] += 1
        spent[1] += lasted - inside

    def _describe(self, name):
        """The number of a name, told to the record with the line that it was first met at."""
        if len(self._numbers) >= MOST:
            return 0
        number = self._numbers[name] = len(self._numbers) + 1
        frame = sys._getframe(2)  # in `floorit.span`
        theirs = frame.f_code.co_filename
        while frame is not None and frame.f_code.co_filename == theirs:
            frame = frame.f_back
        where = (os.path.abspath(frame.f_code.co_filename), frame.f_lineno) if frame else (None, None)
        self._session.writer.note("name", id=number, name=str(name), file=where[0], line=where[1])
        return number

    def _fail(self, error):
        self._broken = True
        self._session.missing(NAME, repr(error))
