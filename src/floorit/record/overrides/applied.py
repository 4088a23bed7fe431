"""What became of one override, told in the record as it changes: of a process, its last note counts."""

import os

from ..sampler import USER, caller
from ..wire import FAILED_OVERRIDE, IN_FORCE, NOT_MET


class Applied:
    """One override."""

    def __init__(self, session, code, value):
        self._session = session
        self.code = code
        self.value = value
        self.forget()
        os.register_at_fork(after_in_child=self.forget)
        self.note()

    def forget(self):
        """In this process it has done nothing yet."""
        self._state, self._reason = NOT_MET, None
        self._acted = 0
        self._asked = self._place = None
        self.is_opposed = False

    def act(self):
        """It has changed something."""
        self._acted += 1
        if self._state == NOT_MET:
            self._state, self._reason = IN_FORCE, None
            self.note()

    def unmet(self, reason):
        """Why there is nothing yet that it could change."""
        if self._state == NOT_MET and self._reason != reason:
            self._reason = reason
            self.note()

    def remark(self, reason):
        """Something to be known of it, though it is in force; told when the process ends."""
        if self._state == IN_FORCE:
            self._reason = reason

    def fail(self, reason):
        """It cannot be put in force, or only in part."""
        if self._state != FAILED_OVERRIDE:
            self._state, self._reason = FAILED_OVERRIDE, reason
            self.note()

    def opposed(self, asked, place=None):
        """The program itself asks for something else, at `place` (file, line, function) if that is known."""
        if not self.is_opposed:
            self.is_opposed = True
            self._asked, self._place = asked, place
            self.note()

    def opposed_here(self, asked):
        """The same, by a call of the program's that is under way."""
        if not self.is_opposed:
            self.opposed(asked, _place())

    def overrule(self, asked):
        """The program asks for something else just now, and does not get it."""
        self.opposed_here(asked)
        self.act()

    def note(self):
        """Into the record, and into that of each process that is forked and trains."""
        if self._session.is_worker:
            self.tell()
        else:
            self._session.remember("override", **self._facts())

    def close(self):
        """The process ends. A worker tells only of what it has done."""
        if self._acted or not self._session.is_worker:
            self.tell()

    def tell(self):
        """Into the record of this process."""
        self._session.writer.note("override", **self._facts())

    def _facts(self):
        return {
            "code": self.code,
            "value": self.value,
            "pid": os.getpid(),
            "state": self._state,
            "reason": self._reason,
            "acted": self._acted,
            "opposed": self.is_opposed,
            "asked": self._asked,
            "place": self._place,
        }


def _place():
    frame, kind = caller(3)
    if kind is not USER:
        return None
    return (os.path.abspath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)
