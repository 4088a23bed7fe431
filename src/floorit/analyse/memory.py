"""Memory that ran out: what was asked for, what held the rest, what was free, and whether the program died of it."""

from __future__ import annotations

import re
import signal
from typing import Any, Literal

import msgspec
import numpy as np

from floorit.analyse.ledger import Line
from floorit.events import Headroom, Process, RecordReader
from floorit.record import wire

KILLED = 128 + signal.SIGKILL  # the exit code of a shell for SIGKILL
LOW = 0.05  # of the machine's memory: with less available, a kill that nobody explains is put down to it
_UNITS = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50}
_SIZE = r"([\d.]+) (bytes|[KMGTP]iB)"
# What CUDA's allocator says (c10/cuda/CUDACachingAllocator.cpp).
_CUDA = {
    "asked": re.compile(rf"Tried to allocate {_SIZE}", re.IGNORECASE),
    "total": re.compile(rf"total capacity of {_SIZE}", re.IGNORECASE),
    "free": re.compile(rf"of which {_SIZE} is free", re.IGNORECASE),
    "allowed": re.compile(rf"{_SIZE} allowed", re.IGNORECASE),
    "allocated": re.compile(rf"{_SIZE} is allocated by PyTorch", re.IGNORECASE),
    "unallocated": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated", re.IGNORECASE),
}
# What torch's and numpy's allocators of the host say.
_HOST = re.compile(rf"(?:tried to allocate|unable to allocate|failed to allocate) {_SIZE}", re.IGNORECASE)
# What torch says of workers that a signal has ended, and the signals.
_KILL_SAID = re.compile(r"DataLoader worker \(pid.*?\) is killed by signal: Killed")
_BUS_SAID = re.compile(r"DataLoader worker \(pid.*?\) is killed by signal: Bus error")
_KILL, _BUS = signal.SIGKILL, signal.SIGBUS
_SHARED = re.compile(r"</?torch_|shared memory|/dev/shm", re.IGNORECASE)
_HOST_WORDS = re.compile(r"allocate memory|unable to allocate|insufficient memory|MemoryError|bad_alloc", re.IGNORECASE)

Where = Literal["gpu", "host", "shared"]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that is known to belong to something."""

    what: str
    bytes: int
    dtypes: dict[str, int] = {}  # the same by type


class OutOfMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The last time that memory ran out. Bytes; None where it is not known."""

    where: Where  # `shared` is /dev/shm
    what: str  # in words
    ended: bool  # whether the program died of it
    times: int = 1
    asked: int | None = None
    limit: int | None = None  # of a process's addresses: ulimit -v
    free: int | None = None  # that the program could still have had
    total: int | None = None  # that the program may have
    on_device: int | None = None  # that the GPU has
    allocated: int | None = None  # by tensors
    reserved: int | None = None  # by torch's allocator from the GPU
    split: int | None = None  # of it, free pieces of blocks in use: too small, or in the wrong place
    retries: int | None = None  # times that the allocator gave all it had back and tried again
    others: int | None = None  # used on this GPU by what is not this process's torch
    held: list[Held] = []
    phase: str | None = None
    batch: int | None = None  # samples in the step
    inputs: list[str] = []  # shape and type of what the model was called with
    place: Line | None = None
    workers: int = 0
    prefetch: int | None = None
    autocast: bool = False
    recomputes: bool = False
    expandable: bool = False  # whether the allocator has expandable segments
    headroom: Headroom | None = None


def find(reader: RecordReader, exit_code: int | None, headroom: Headroom | None) -> OutOfMemory | None:
    """The last of them, in the first process that has one; None where memory never ran out, as far as is known."""
    for process in reader.run():
        found = _noted(process, exit_code, headroom)
        if found is not None:
            return found
    how = _killed(headroom) if exit_code == KILLED and headroom is not None else None
    if how is None:
        return None
    first = next(iter(reader.run()), None)
    known = _loading(first) if first is not None else {}
    free = headroom.available_least if headroom is not None else None
    return OutOfMemory(where="host", what=how, ended=True, free=free, headroom=headroom, **known)


def _killed(headroom: Headroom) -> str | None:
    """How a program that was killed ran out of memory; None where anybody may have killed it."""
    if headroom.kills:
        return "the kernel killed the program for lack of memory"
    if headroom.kills is None and _is_low(headroom):
        return "the program was killed, most likely for lack of memory"
    return None


def _is_low(headroom: Headroom) -> bool:
    least, memory = headroom.available_least, headroom.memory
    return least is not None and memory is not None and least < LOW * memory


def _noted(process: Process, exit_code: int | None, headroom: Headroom | None) -> OutOfMemory | None:
    notes = [note for note in process.memory_errors if note["source"] != "end"]
    told = [(note, kind) for note in notes if (kind := _kind(note, headroom)) is not None]
    if not told:
        return None
    note, (where, what) = told[-1]
    uncaught = any(later["source"] == "end" and later["at"] >= note["at"] for later in process.memory_errors)
    trained_on = int(process.rows["backwards"].sum()) > note["backwards"]
    failed = exit_code not in (0, None)
    on_gpu = where == "gpu"
    observed = next((n for n in reversed(notes) if n["source"] == "allocator"), None) if on_gpu else None
    return OutOfMemory(
        where=where,
        what=what,
        ended=failed and (uncaught or not trained_on),
        times=_times(notes, on_gpu),
        **_where_it_was(observed or note, process),
        **(_on_gpu(observed, _text(note)) if on_gpu else _on_host(note, headroom)),
        held=_held((observed or note).get("held")),
        **_loading(process),
        autocast=any(n["autocast"] for n in notes) or any(r["autocast"] for r in process.readings),
        recomputes=bool(process.rows["seconds"][:, wire.RECOMPUTE].any()),
        expandable="expandable_segments:true" in (note["allocator"] or "").lower(),
        headroom=headroom,
    )


def _kind(note: dict[str, Any], headroom: Headroom | None) -> tuple[Where, str] | None:
    """Which memory it was, and what happened; None where it was something else after all."""
    if note["source"] == "allocator":
        return "gpu", "CUDA ran out of memory"
    text = _text(note)
    if "OutOfMemoryError" in note["types"] or "CUDA out of memory" in text:
        return "gpu", "CUDA ran out of memory"
    if _KILL in note["killed"] or _KILL_SAID.search(text):
        kills = headroom.kills if headroom is not None else None
        if kills:
            return "host", "the kernel killed a worker of the loader for lack of memory"
        return None if kills == 0 else ("host", "a worker of the loader was killed, most likely for lack of memory")
    if _BUS in note["killed"] or _BUS_SAID.search(text):
        return "shared", "a worker of the loader died of a bus error, most likely for lack of room in /dev/shm"
    if "No space left" in text:
        return ("shared", "there was no room left in /dev/shm") if _SHARED.search(text) else None
    if "MemoryError" in note["types"] or _HOST_WORDS.search(text):
        is_shared = _SHARED.search(text) is not None
        return ("shared", "no shared memory could be had") if is_shared else ("host", "the host ran out of memory")
    return None


def _text(note: dict[str, Any]) -> str:
    return "\n".join(note.get("messages", ()))


def _times(notes: list[dict[str, Any]], on_gpu: bool) -> int:
    """The allocator tells of each time; without it, each error does."""
    observed = sum(note["source"] == "allocator" for note in notes)
    return observed if on_gpu and observed else sum(note["source"] == "exception" for note in notes)


def _where_it_was(note: dict[str, Any], process: Process) -> dict[str, Any]:
    place = note["place"]
    inputs = [f"{' x '.join(map(str, shape)) or 'a number'} {dtype}" for shape, dtype in note["inputs"] or ()]
    until = process.rows[: int(np.searchsorted(process.rows["end"], note["at"])) + 1]["samples"]
    samples = until[until > 0]
    return {
        "phase": note["phase"],
        "place": Line(file=place[0], line=place[1], function=place[2], share=1.0) if place else None,
        "inputs": inputs,
        "batch": int(samples[-1]) if len(samples) else None,
    }


def _on_gpu(observed: dict[str, Any] | None, text: str) -> dict[str, Any]:
    """By the allocator itself, else by what its message says."""
    if observed is None:
        said = {name: _size(pattern.search(text)) for name, pattern in _CUDA.items()}
        total, unallocated, allocated = said.pop("total"), said.pop("unallocated"), said["allocated"]
        allowed = said.pop("allowed")
        reserved = allocated + unallocated if allocated is not None and unallocated is not None else None
        free = said.pop("free")
        return {**said, "reserved": reserved, **_room(total, allowed or total, free, reserved)}
    names = ("asked", "allocated", "reserved", "split", "retries")
    room = _room(observed["total"], observed["allowed"], observed["free"], observed["reserved"])
    return {**{name: observed[name] for name in names}, **room}


def _room(total: int | None, allowed: int | None, free: int | None, reserved: int | None) -> dict[str, int | None]:
    """What there was on the GPU, what the program might have of it, and what of that was left."""
    left = [free] if free is not None else []
    if allowed is not None and total is not None and allowed < total and reserved is not None:
        left.append(max(allowed - reserved, 0))
    others = _others(total, free, reserved)
    return {"on_device": total, "total": allowed, "free": min(left, default=None), "others": others}


def _others(total: int | None, free: int | None, reserved: int | None) -> int | None:
    """What is neither free nor torch's: other processes, and CUDA's own part."""
    if total is None or free is None or reserved is None:
        return None
    return max(total - free - reserved, 0)


def _on_host(note: dict[str, Any], headroom: Headroom | None) -> dict[str, Any]:
    return {
        "asked": _size(_HOST.search(_text(note))),
        "limit": note["limit"],
        "free": headroom.available_least if headroom is not None else None,
    }


def _size(match: re.Match[str] | None) -> int | None:
    return None if match is None else round(float(match[1]) * _UNITS[match[2].lower()])


def _held(noted: dict[str, dict[str, int]] | None) -> list[Held]:
    return [Held(what=what, bytes=sum(d.values()), dtypes=d) for what, d in (noted or {}).items() if d]


def _loading(process: Process) -> dict[str, Any]:
    """The most workers that a loader of the program has, and how many batches each may be ahead."""
    loaders = sorted(process.loaders.values(), key=lambda loader: -int(loader["workers"]))
    return {"workers": loaders[0]["workers"], "prefetch": loaders[0]["prefetch"]} if loaders else {}
