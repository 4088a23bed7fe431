"""The trace that torch's profiler wrote of the kernel window, read into arrays."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# What ran on the GPU, and what the host asked of CUDA, by the trace's own names of categories.
_WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
_CALLS = {"cuda_runtime", "cuda_driver"}
_NOT_JSON = re.compile(rb":\s*-?(?:inf|nan)\b", re.IGNORECASE)  # some versions write a bandwidth so


class _Args(msgspec.Struct, frozen=True):
    device: Any = None
    stream: Any = None
    correlation: Any = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    tid: Any = 0
    args: _Args = _Args()


class _File(msgspec.Struct):
    traceEvents: list[_Event]
    baseTimeNanoseconds: int = 0


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Things that lasted, in the order in which they began. Nanoseconds since the epoch."""

    names: list[str]
    name: Ints  # its number in `names`
    begin: Ints
    end: Ints
    lane: Ints  # the GPU's stream, or the host's thread
    device: Ints
    correlation: Ints  # what a call has in common with the work it launched; -1: nothing

    def __len__(self) -> int:
        return len(self.begin)

    def take(self, chosen: NDArray[Any]) -> Events:
        """Some of them."""
        columns = {c: getattr(self, c)[chosen] for c in ("name", "begin", "end", "lane", "device", "correlation")}
        return msgspec.structs.replace(self, **columns)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What the GPU did, and what the host asked for."""

    work: Events
    calls: Events


def parse(data: bytes) -> Trace:
    """Read a trace; ValueError where it is none."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError:
        file = msgspec.json.decode(_NOT_JSON.sub(b": null", data), type=_File)
    base = file.baseTimeNanoseconds
    lasting = [event for event in file.traceEvents if event.ph == "X"]
    return Trace(
        work=_events([e for e in lasting if e.cat in _WORK], base),
        calls=_events([e for e in lasting if e.cat in _CALLS], base),
    )


def _events(found: list[_Event], base: int) -> Events:
    numbers: dict[str, int] = {}
    name = np.array([numbers.setdefault(e.name, len(numbers)) for e in found], np.int64)
    # Microseconds with three decimals: exact in nanoseconds once they are rounded.
    begin = np.rint(np.array([e.ts for e in found], np.float64) * 1e3).astype(np.int64) + base
    length = np.rint(np.array([e.dur for e in found], np.float64) * 1e3).astype(np.int64)
    order = np.argsort(begin, kind="stable")
    return Events(
        names=list(numbers),
        name=name[order],
        begin=begin[order],
        end=(begin + length)[order],
        lane=_whole([e.tid if e.args.stream is None else e.args.stream for e in found])[order],
        device=_whole([e.args.device for e in found])[order],
        correlation=_whole([e.args.correlation for e in found])[order],
    )


def _whole(values: list[Any]) -> Ints:
    return np.array([value if isinstance(value, int) else -1 for value in values], np.int64)
