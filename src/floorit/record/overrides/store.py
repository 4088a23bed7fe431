"""Bytes that several processes of the program keep in one piece of memory, or in one file on disk, found by a key.

A file without a name, which is gone with the last process that has it. Forked children have it already, others open it
through the process that made it. What is in it is never changed: an entry is written, then its place in the table.
"""

import fcntl
import hashlib
import mmap
import os
import struct
import tempfile
import threading

from ..memory import free_memory

VARIABLE = "FLOORIT_STORE"  # where the file is, for processes that are not forked
SHARE = 0.5  # of the room that is free when the store is made, at most
_SPARED = 0.1  # of it, which must still be free after something is put in
_SLOTS = 1 << 20  # entries at most; pages of the table that are not used take no memory
_SLOT = struct.Struct("<16sQQ")  # key, where, length
_HEAD = struct.Struct("<QQ")  # bytes in use, entries
_FIRST = _HEAD.size + _SLOTS * _SLOT.size
_EMPTY = b"\0" * 16


class InMemory:
    """A file that is nowhere but in memory."""

    @staticmethod
    def make():
        return os.memfd_create("floorit")

    @staticmethod
    def free(_):
        return free_memory()


class OnDisk:
    """A file where the system keeps what can be made again, not where the program keeps its data."""

    @staticmethod
    def make():
        for folder in (os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~/.cache"), tempfile.gettempdir()):
            try:
                file, path = tempfile.mkstemp(prefix="floorit-", dir=folder or os.devnull)
            except OSError:
                continue  # not there, or not for us to write to
            os.unlink(path)
            os.posix_fallocate(file, 0, _FIRST)  # what is written through memory must not find the disk full
            return file
        raise OSError("there is no folder for temporary files")

    @staticmethod
    def free(file):
        found = os.fstatvfs(file)
        return found.f_bavail * found.f_frsize


class Store:
    """Opened, or made, in a place that says how much room it has."""

    def __init__(self, place):
        self._place = place
        self._file, size = _opened() or _made(place)
        self._bytes = mmap.mmap(self._file, size)
        self._spared = _SPARED * (size - _FIRST) / SHARE
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        self._lock = threading.Lock()

    def get(self, name):
        """The entry of that name, as a view that must not be kept; None."""
        slot = self._find(_key(name))
        if slot is None:
            return None
        key, at, length = _SLOT.unpack_from(self._bytes, slot)
        return memoryview(self._bytes)[at : at + length] if key != _EMPTY else None

    def put(self, name, *parts):
        """Whether there was room for it."""
        key = _key(name)
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._write(key, parts)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _write(self, key, parts):
        used, entries = _HEAD.unpack_from(self._bytes)
        at = begin = used or _FIRST
        slot = self._find(key)
        length = sum(len(part) for part in parts)
        room = len(self._bytes) - begin
        is_scarce = self._place.free(self._file) - length < self._spared
        if slot is None or entries >= _SLOTS // 2 or length > room or is_scarce:
            return False
        if _SLOT.unpack_from(self._bytes, slot)[0] == key:
            return True  # another process was faster
        for part in parts:
            at = self._append(at, memoryview(part).cast("B"))
        _HEAD.pack_into(self._bytes, 0, at, entries + 1)
        _SLOT.pack_into(self._bytes, slot, _EMPTY, begin, length)
        self._bytes[slot : slot + len(key)] = key  # last: who reads does not ask for the lock
        return True

    def _append(self, at, part):
        """Where it ends. Written to the file, not through memory: a full disk is then an error, not a signal."""
        while part:
            written = os.pwrite(self._file, part, at)
            at, part = at + written, part[written:]
        return at

    def _find(self, key):
        """The slot that holds the key, or the empty one where it would be."""
        first = int.from_bytes(key[:8], "little")
        for step in range(_SLOTS):
            slot = _HEAD.size + (first + step) % _SLOTS * _SLOT.size
            found = self._bytes[slot : slot + len(key)]
            if found in (key, _EMPTY):
                return slot
        return None


def _key(name):
    return hashlib.blake2b(repr(name).encode(), digest_size=len(_EMPTY)).digest()


def _opened():
    """The store of the process that started this one."""
    path = os.environ.get(VARIABLE)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC) if path else None
    except OSError:
        return None  # that process has ended
    return None if file is None else (file, os.fstat(file).st_size)


def _made(place):
    file = place.make()
    size = _FIRST + int(SHARE * place.free(file))
    os.ftruncate(file, size)
    os.environ[VARIABLE] = "/proc/%d/fd/%d" % (os.getpid(), file)
    return file, size
