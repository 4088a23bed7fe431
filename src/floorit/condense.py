"""Keeps the record of a long run small: what is far behind is played, packed beside it, and given back to the disk.

All of it happens in floorit's own process, on the files of processes of this machine; the program's is not touched, and
goes on appending to its file. What has been packed and synced is punched out of that file, which keeps its length. The
first part of a file stays, and so does the last: what is told event by event is told of them.

    train-17.rec    the first part · a hole · what was written lately
    train-17.pack   what was in the hole

A pack is written whole before anything is given back, and given back only when the next has been written: one who
reads what he has just heard of finds it. Should this process be killed in between, nothing is missing. When the program
is over, the packs take the place of the hole, so that a record can be copied by any means.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil

from floorit import packing
from floorit.events import NOT_OURS, PACKED, Process, is_shared
from floorit.record import wire
from floorit.replay import WINDOW
from floorit.tables import Rows

HEAD = 1 << 22  # bytes at the start of a file that stay as they are
TAIL = 1 << 22  # and at its end, at least
AT_ONCE = 1 << 22  # bytes that are packed together
EVERY = 10.0  # seconds between two looks at the files
SHARE = 0.02  # of the time that may go into it
_SAMPLES, _LINES, _PROCESS, _RECEIVED, _SYNCS = (
    wire.note(kind)[-len(f'"{kind}"}}') :] for kind in ("samples", "lines", "process", "received", "syncs")
)  # what such notes end with
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


class Condenser:
    """The files of a record, looked at now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, _File] = {}
        self._is_able: bool | None = None  # None: it has not been tried
        self._due = time.monotonic() + EVERY

    def watch(self) -> None:
        """Pack what is due, if it is time for that."""
        began = time.monotonic()
        if began >= self._due and self._is_able is not False:
            with suppress(OSError):  # a folder that is gone is said elsewhere
                self.look()
            now = time.monotonic()
            self._due = now + max(EVERY, (now - began) / SHARE)

    def look(self) -> None:
        """One stretch of each file that has grown enough."""
        for path in sorted(self._folder.glob("*.rec")):
            file = self._files.get(path)
            if file is None and _is_ours(path) and path.stat().st_size > HEAD + AT_ONCE + TAIL:
                file = self._files[path] = _File(path)
            if file is not None and file.is_due() and self._can_punch():
                file.try_to_go_on()

    def finish(self) -> None:
        """The program is over: leave files without holes."""
        for file in self._files.values():
            with suppress(OSError, ValueError):  # then they have them
                file.finish()

    def _can_punch(self) -> bool:
        """Whether the disk takes parts of files back."""
        if self._is_able is None:
            self._is_able = _is_punched(self._folder / "hole.part")
        return self._is_able


class _File:
    """One process's file, or the one that its workers share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process = _Playing(is_shared(path))
        self._offset = 0
        self._first: packing.Stretch | None = None  # that was packed
        self._kept: packing.Stretch | None = None  # packed last, not given back yet
        self._packs = path.with_suffix(PACKED)
        self._lengths: list[int] = []  # of what is in it
        self._is_over = False  # it cannot be packed

    def is_due(self) -> bool:
        return not self._is_over and self._path.stat().st_size - self._offset > AT_ONCE + TAIL

    def try_to_go_on(self) -> None:
        """The next stretch. Whatever fails, the file stays as it is from there on, and the program goes on."""
        try:
            self._go_on()
        except Exception:  # a disk that is full, a fault of ours
            self._is_over = True

    def _go_on(self) -> None:
        """Play the next stretch; pack it, unless it is the start of the file."""
        begin = self._offset
        with self._path.open("rb") as file:
            file.seek(begin)
            found = list(wire.frames(file.read(AT_ONCE if begin else HEAD)))
        if not found:  # one that is longer than that, or foreign: nothing is touched any more
            self._is_over = True
            return
        for tag, payload, _ in found:
            with suppress(*NOT_OURS):
                self._process.take(tag, payload)
        self._process.play()
        self._offset = begin + found[-1][2]
        made, moments = self._process.pack()
        if begin:
            self._keep(packing.Stretch(begin=begin, end=self._offset, since=moments[0], until=moments[1]), made)

    def _keep(self, stretch: packing.Stretch, made: packing.Pack) -> None:
        frame = wire.frame(wire.PACK_TAG, packing.encode(stretch, made))
        with self._packs.open("ab" if self._lengths else "xb") as packs:
            packs.write(frame)
            packs.flush()
            os.fsync(packs.fileno())
        if self._kept is not None:
            _punch(self._path, self._kept.begin, self._kept.end)
        self._first, self._kept = self._first or stretch, stretch
        self._lengths.append(len(frame))

    def finish(self) -> None:
        """Put the packs into the file, unless somebody still writes to it."""
        if self._first is None or self._kept is None or psutil.pid_exists(_writer_of(self._path)):
            return
        whole = self._path.with_suffix(".part")
        with self._path.open("rb") as plain, self._packs.open("rb") as packed, whole.open("wb") as file:
            file.write(plain.read(self._first.begin))
            for length in self._lengths:
                file.write(_moved(packed.read(length), file.tell()))
            plain.seek(self._kept.end)
            shutil.copyfileobj(plain, file)
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self._path)
        self._packs.unlink()


class _Playing(Process):
    """A process whose tables are taken as they are made, and whose notes are kept; of some, their sum."""

    def __init__(self, is_shared: bool) -> None:
        super().__init__()
        self._is_shared = is_shared
        self._notes: list[bytes] = []
        self._moments = (0.0, 0.0)
        self._raw: dict[str, list[Rows]] = {"looks": [], "spans": [], "seen": []}

    def take(self, tag: bytes, payload: bytes) -> None:
        """What is played or added up is taken in, and what a process tells of itself; other notes are kept."""
        if tag != wire.JSON_TAG:
            if not (self._is_shared and tag == wire.LOG_TAG):
                super().take(tag, payload)
        elif payload.endswith(_SAMPLES) and self._is_shared:
            note = msgspec.json.decode(payload)
            looks = [(time, note["pid"], stack, leaf) for time, stack, leaf in note["looks"]]
            self._raw["seen"].append(np.array(looks, packing.SEEN))
        elif payload.endswith((_SAMPLES, _LINES, _RECEIVED, _SYNCS)):
            super().take(tag, payload)
        else:
            self._notes.append(payload)
            if payload.endswith(_PROCESS):
                super().take(tag, payload)

    def play(self) -> None:
        """Looks and spans as they are told, with the numbers of their places."""
        if self._player is not None:
            self._player.play()
            self._raw["looks"] += self._player.looks
            spans = [(s.end, s.end - s.begin, s.phase, s.place) for s in self._player.spans]
            self._raw["spans"].append(np.array(spans, packing.SPAN))
            self._player.looks.clear()
            self._player.spans.clear()
        super().play()

    def pack(self) -> tuple[packing.Pack, tuple[float, float]]:
        """All since the last time, and from when to when that was."""
        notes, self._notes = [*self._notes, *_summed(self.received, self.syncs)], []
        self.received, self.syncs = [], []
        parts = {**self._parts, **self._raw}
        tables = {name: np.concatenate([np.zeros(0, kind), *parts[name]]) for name, kind in packing.KINDS.items()}
        for some in parts.values():
            some.clear()
        self._moments = _moments(tables, self._moments[1])
        is_watched = bool((tables["rows"]["flags"] & WINDOW).any())  # a kernel's neighbours are microseconds away
        made = packing.Pack(
            notes=notes,
            tables={name: packing.packed(table, exactly=is_watched) for name, table in tables.items()},
            played=self._played,
            player=self._player.saved() if self._player is not None else None,
        )
        return made, self._moments


def _summed(received: list[dict[str, Any]], syncs: list[dict[str, Any]]) -> list[bytes]:
    """One note of each kind instead of many."""
    sites: dict[tuple[Any, ...], list[int]] = {}
    for note in syncs:
        for *site, calls, nanoseconds in note["sites"]:
            total = sites.setdefault(tuple(site), [0, 0])
            total[:] = total[0] + calls, total[1] + nanoseconds
    batches, seconds = (sum(note[name] for note in received) for name in ("batches", "seconds"))
    frames = []
    if received:
        frames.append(wire.note("received", at=received[-1]["at"], batches=batches, seconds=seconds))
    if syncs:
        frames.append(wire.note("syncs", at=syncs[-1]["at"], sites=[[*site, *total] for site, total in sites.items()]))
    return [frame[wire.FRAME.size :] for frame in frames]


def _moved(frame: bytes, begin: int) -> bytes:
    """The frame of a pack that stands at the place that it names."""
    moved: bytes = wire.frame(wire.PACK_TAG, packing.moved(frame[wire.FRAME.size :], begin, begin + len(frame)))
    return moved


def _moments(tables: dict[str, Rows], since: float) -> tuple[float, float]:
    """When the last row or batch of the stretch before ended, and that of this one."""
    ends = [float(tables[name]["end"][-1]) for name in ("rows", "fetches") if len(tables[name])]
    return since, max(ends, default=since)


def _writer_of(path: Path) -> int:
    """The number of the process, or of the one whose workers share the file: see record/writer.py."""
    return int(path.stem.split("-")[-1 if is_shared(path) else -2])


def _is_ours(path: Path) -> bool:
    """Whether it is of this machine, on which no other floorit packs it."""
    host = os.uname().nodename
    return path.name.startswith((f"{host}-", f"workers-{host}-")) and not path.with_suffix(PACKED).exists()


def _is_punched(path: Path) -> bool:
    """Try it on a file of our own."""
    try:
        path.write_bytes(b"\1" * (1 << 16))
        _punch(path, 0, 1 << 16)
        return path.stat().st_blocks == 0 and not any(path.read_bytes())
    except OSError:
        return False
    finally:
        with suppress(OSError):
            path.unlink()


def _punch(path: Path, begin: int, end: int) -> None:
    """Give a part of a file back to the disk: it reads as noughts. OSError where that cannot be done."""
    punch = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if punch is None:
        raise OSError("no holes in files here")
    file = os.open(path, os.O_RDWR)
    try:
        arguments = (ctypes.c_int64(begin), ctypes.c_int64(end - begin))
        if punch(file, _KEEP_SIZE | _PUNCH_HOLE, *arguments):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(file)
