"""Appends frames to this process's file; what it cannot write it gives up, once, with a word to the parent."""

import os
import time

from . import wire

_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class Writer:
    """One file, opened when there is something to write."""

    def __init__(self, folder):
        self.folder = folder
        self.forget()

    def forget(self):
        """Begin a file of one's own (in a forked child, the one in use is the parent's)."""
        self._file = None
        self._broken = False
        self._pending = []
        self.name = "%s-%d-%x.rec" % (os.uname().nodename, os.getpid(), time.time_ns())

    def use(self, name):
        """Append to a file that other processes append to as well."""
        self.name = name

    def note(self, kind, **fields):
        """Keep a JSON frame for the next flush."""
        self._pending.append(wire.note(kind, **fields))

    def flush(self, *blocks):
        """Append what is pending and `blocks` of (tag, bytes), in one write."""
        count = len(self._pending)
        parts = self._pending[:count]
        del self._pending[:count]
        parts += [wire.frame(tag, data) for tag, data in blocks if data]
        if parts and not self._broken:
            self._append(b"".join(parts))

    def _append(self, data):
        try:
            if self._file is None:
                self._file = os.open(os.path.join(self.folder, self.name), _OPEN, 0o644)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            self._broken = True
            self._tell("%s (%s)" % (error.strerror, self.folder))

    def _tell(self, reason):
        """Overwrite the status file, which was made beforehand: it needs no room on a full disk."""
        try:
            status = os.open(os.path.join(self.folder, "status"), os.O_WRONLY)
            try:
                os.write(status, reason.encode()[:400])
            finally:
                os.close(status)
        except OSError:
            pass  # nobody is left to be told: the program goes on

    def abandon(self):
        """In a forked child: let go of the parent's file without writing to it."""
        if self._file is not None:
            os.close(self._file)
        self.forget()
