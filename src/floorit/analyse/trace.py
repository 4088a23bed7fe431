"""The trace that torch's profiler wrote of a window, read into arrays."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.record import wire

Ints = NDArray[np.int64]

# What ran on the GPU, and what the host asked of CUDA, by the trace's own names of categories.
_WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
_CALLS = {"cuda_runtime", "cuda_driver"}
_OPERATORS = {"cpu_op", "user_annotation"}
_NODE = "autograd::engine::evaluate_function: "  # an operation of the backward pass, with all that it does
_FLOW = "fwdbwd"  # arrows from an operator to the one of the backward pass that belongs to it
_READ = _WORK | _CALLS | _OPERATORS | {_FLOW}
_NOT_JSON = re.compile(rb":\s*-?(?:inf|nan)\b", re.IGNORECASE)  # some versions write a bandwidth so


class _Args(msgspec.Struct, frozen=True, omit_defaults=True):
    device: Any = None
    stream: Any = None
    correlation: Any = None
    external: Any = msgspec.field(name="External id", default=None)
    sequence: Any = msgspec.field(name="Sequence number", default=None)
    forward_thread: Any = msgspec.field(name="Fwd thread id", default=None)
    types: Any = msgspec.field(name="Input type", default=None)


class _Event(msgspec.Struct, omit_defaults=True):
    ph: str = ""
    id: Any = None
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
    operator: Ints  # the innermost that it was asked for by; -1: none

    def __len__(self) -> int:
        return len(self.begin)

    def take(self, chosen: NDArray[Any]) -> Events:
        """Some of them."""
        columns = ("name", "begin", "end", "lane", "device", "correlation", "operator")
        return msgspec.structs.replace(self, **{column: getattr(self, column)[chosen] for column in columns})


class Operator(msgspec.Struct, frozen=True):
    """What torch did on the host, as far as it tells whose work it is: a mark, a node, or an operator with a number."""

    begin: int
    end: int
    lane: int  # the host's thread
    part: int  # of which it is the mark; -1: it is none
    is_node: bool  # an operation of the backward pass
    sequence: int  # the number of the operator, or of the one that a node belongs to; -1: it has none
    thread: int  # that the latter ran in, as torch counts threads; 0: it is not of the backward pass


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What the GPU did, what the host asked for, and what torch did."""

    work: Events
    calls: Events
    operators: list[Operator] = []  # in the order in which they began
    lanes: dict[int, int] = {}  # of the host's threads, by torch's own numbers
    began: dict[int, tuple[int, int]] = {}  # thread and moment at which each operator began, by its number for work
    inputs: dict[int, tuple[str, ...]] = {}  # C++'s names of the types of their inputs, by the same


def shrink(record: Path) -> None:
    """Leave in the traces of a record only what is read of them, about half. One that cannot be read stays as it is."""
    for path in [*record.glob("window-*.json"), *record.glob("parts-*.json")]:
        with suppress(OSError, ValueError):
            file = _decoded(path.read_bytes())
            kept = [event for event in file.traceEvents if event.cat in _READ]
            smaller = path.with_suffix(".part")
            smaller.write_bytes(msgspec.json.encode(msgspec.structs.replace(file, traceEvents=kept)))
            smaller.replace(path)


def _decoded(data: bytes) -> _File:
    try:
        return msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError:
        return msgspec.json.decode(_NOT_JSON.sub(b": null", data), type=_File)


def parse(data: bytes) -> Trace:
    """Read a trace; ValueError where it is none."""
    file = _decoded(data)
    base = file.baseTimeNanoseconds
    lasting = [event for event in file.traceEvents if event.ph == "X"]
    operators = [event for event in lasting if event.cat in _OPERATORS]
    return Trace(
        work=_events([e for e in lasting if e.cat in _WORK], base),
        calls=_events([e for e in lasting if e.cat in _CALLS], base),
        operators=_operators(operators, base),
        lanes=_lanes(file.traceEvents),
        began={e.args.external: (e.tid, base + round(e.ts * 1e3)) for e in operators if e.args.external},
        inputs={e.args.external: tuple(map(str, e.args.types)) for e in operators if isinstance(e.args.types, list)},
    )


def _operators(found: list[_Event], base: int) -> list[Operator]:
    operators = []
    for event in found:
        part = int(event.name[len(wire.PART) :]) if event.name.startswith(wire.PART) else -1
        sequence = event.args.sequence if isinstance(event.args.sequence, int) else -1
        is_node = event.name.startswith(_NODE)
        if part >= 0 or is_node or sequence >= 0:
            begin = base + round(event.ts * 1e3)
            length = round(event.dur * 1e3)
            thread = event.args.forward_thread or 0
            operators.append(Operator(begin, begin + length, event.tid, part, is_node, sequence, thread))
    return sorted(operators, key=lambda operator: (operator.begin, -operator.end))


def _lanes(found: list[_Event]) -> dict[int, int]:
    """By the arrows, which begin in the thread that the operator that they end at knows by number."""
    begins = {event.id: event.tid for event in found if event.ph == "s" and event.cat == _FLOW}
    threads = {(e.tid, e.ts): e.args.forward_thread for e in found if e.ph == "X" and e.args.forward_thread}
    lanes: dict[int, int] = {}
    for event in found:
        if event.ph == "f" and event.cat == _FLOW and event.id in begins and (event.tid, event.ts) in threads:
            lanes.setdefault(threads[event.tid, event.ts], begins[event.id])
    return lanes


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
        operator=_whole([e.args.external for e in found])[order],
    )


def _whole(values: list[Any]) -> Ints:
    return np.array([value if isinstance(value, int) else -1 for value in values], np.int64)
