"""The recorded steps as a trace that Perfetto and Chrome open (Trace Event Format, JSON object form).

Each rank is a process with one track for its training thread, in which phases lie inside of steps, one track for marks,
and one for each loader worker; what its GPU did in the kernel window is a process of its own, with a track for each
stream. `X` events have `ts` and `dur` in microseconds; `M` events name processes and tracks; `C` events are counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from floorit import vitals
from floorit.analyse import trace, tracks
from floorit.analyse.tracks import EVALUATION, Interval
from floorit.errors import RecordError
from floorit.events import Process, RecordReader
from floorit.record import wire
from floorit.report.trained import Trained, of_record
from floorit.report.words import PHASES
from floorit.runfile import RunFile

MOST_STEPS = 2000  # of all ranks together: more is slow to open
FEWEST_STEPS = 20  # of a rank, however many there are
_TRAINING, _MARKS, _FIRST_WORKER = 1, 2, 10  # numbers of tracks
# Numbers of processes: 0 would be the system's. A rank's is its own and 1, that of its GPU beyond all of them.
_RANK, _GPU, _MACHINE = 1, 1_000_001, 1_000_000
ALWAYS = (0, 1 << 62)  # between which two moments all lies
_MICRO, _NANO = 1e3, 1e-9
_CHECKPOINT = wire.PHASES[wire.CHECKPOINT]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event, by the format's own names."""

    name: str
    ph: str
    pid: int
    tid: int = 0
    ts: float | None = None
    dur: float | None = None
    cat: str = ""
    s: str = ""  # of an instant: how far its line goes
    args: dict[str, Any] = {}


class File(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    traceEvents: list[Event]
    displayTimeUnit: str = "ms"
    otherData: dict[str, Any]


def make(folder: Path, run: RunFile, reader: RecordReader) -> File:
    """The trace of a run's record. RecordError where nothing trained in it."""
    trained = of_record(reader, run.warmup)
    if not trained:
        raise RecordError(f"{folder}: nothing trained in it, so there is no time line")
    first = trained[0].process
    steps = _chosen(trained)
    begin, end = _stretch(trained[0], steps)
    base = max(min(_ahead(t.process, first) + _started(t.process) for t in trained), begin)
    events: list[Event] = []
    for one in trained:
        ahead = _ahead(one.process, first)
        events += _rank(one, reader, ahead - base, (begin - ahead, end - ahead))
        events += _gpu(one.process, reader.folder, ahead - base)
    events += _machine(vitals.load(folder), -base, (max(begin, base), end))
    return File(traceEvents=events, otherData=_about(run, trained[0], steps))


def to_json(file: File) -> bytes:
    """As it is written."""
    return msgspec.json.encode(file)


def said(file: File) -> str:
    """What is in it, in words."""
    events = sum(event.ph == "X" for event in file.traceEvents)
    return f"{file.otherData['steps']}, {events:,} events"


def _chosen(trained: list[Trained]) -> range:
    """The steps that are told: all, or where they are too many the first, or those that end with the kernel window."""
    count = trained[0].iterations.count
    most = max(MOST_STEPS // len(trained), FEWEST_STEPS)
    watched = np.flatnonzero(trained[0].iterations.slowed)
    last = min(max(most, int(watched[-1]) + 2 if len(watched) else 0), count)
    return range(max(last - most, 0), last)


def _stretch(trained: Trained, steps: range) -> tuple[int, int]:
    """When they begin and end. Nanoseconds."""
    if len(steps) == trained.iterations.count:
        return ALWAYS
    of_row = trained.iterations.of_row
    begin = trained.process.starts()[np.flatnonzero(of_row >= steps.start)[0]]
    end = trained.process.rows["end"][np.flatnonzero(of_row < steps.stop)[-1]]
    return round(float(begin) / _NANO), round(float(end) / _NANO)


def _ahead(process: Process, first: Process) -> int:
    """Nanoseconds to add to a process's clock to have that of the first: none on one machine, which has one clock."""
    here, there = process.facts, first.facts
    if process.key[0] == first.key[0] or "wall" not in here or "wall" not in there:
        return 0
    return round(float(here["wall"] - here["clock"] - there["wall"] + there["clock"]) / _NANO)


def _started(process: Process) -> int:
    return round(float(process.starts()[0]) / _NANO)


def _rank(trained: Trained, reader: RecordReader, shift: int, told: tuple[int, int]) -> list[Event]:
    process = trained.process
    rank = _RANK + process.rank
    steps = list(_within(tracks.of_steps(process, trained.iterations), told))
    whole = (steps[0].begin, steps[-1].end) if steps else told  # at the edge, a step of another rank is cut
    phases = list(_within(tracks.of_phases(process, reader.spans_between(process, *whole)), whole))
    events = [
        *_named(rank, f"rank {process.rank}", rank),
        *_track(rank, _TRAINING, "training thread"),
        *(_lasting(step, rank, _TRAINING, shift, "step") for step in steps),
        *(_lasting(phase, rank, _TRAINING, shift, "phase", PHASES.get(phase.name, "")) for phase in phases),
        *_track(rank, _MARKS, "marks"),
        *_marks(steps, phases, rank, shift),
    ]
    shared = reader.workers_of(process)
    workers = tracks.of_workers(shared) if shared is not None else {}
    named = [(f"loader worker {number}", workers[number]) for number in sorted(workers)]
    return events + _side_by_side(named, rank, _FIRST_WORKER, shift, "worker", told)


def _side_by_side(
    named: list[tuple[str, list[list[Interval]]]],
    pid: int,
    tid: int,
    shift: int,
    category: str,
    told: tuple[int, int] = ALWAYS,
) -> list[Event]:
    """Tracks from the number `tid` on, more than one of a name where intervals overlap."""
    events: list[Event] = []
    for name, groups in named:
        inside = [group for group in groups if told[0] <= group[0].begin and group[0].end <= told[1]]
        for lane in tracks.lanes(inside):
            events += _track(pid, tid, name)
            events += [_lasting(interval, pid, tid, shift, category) for interval in lane]
            tid += 1
    return events


def _marks(steps: list[Interval], phases: list[Interval], rank: int, shift: int) -> Iterator[Event]:
    """Where a pass over the data, an evaluation or a checkpoint begins."""
    seen: set[int] = {0}  # 0: it is no pass over a loader's data
    for step in steps:
        number = step.facts.get(tracks.PASS, 0)
        if number not in seen:
            seen.add(number)
            name = EVALUATION if step.name == EVALUATION else "pass over the training data"
            yield _instant(name, step.begin, rank, shift)
    for phase in phases:
        if phase.name == _CHECKPOINT:
            yield _instant(_CHECKPOINT, phase.begin, rank, shift)


def _gpu(process: Process, folder: Path, shift: int) -> list[Event]:
    """What the kernel window saw, where there is one that can be read."""
    window = process.window
    if window is None or "file" not in window:
        return []
    try:
        seen = trace.parse((folder / Path(window["file"]).name).read_bytes())
    except (OSError, ValueError):
        return []
    number = _GPU + process.rank
    work = tracks.of_gpu(seen, window["clocks"])
    named = [(f"device {device}, stream {stream}", work[device, stream]) for device, stream in sorted(work)]
    events = _side_by_side(named, number, 1, shift, "gpu")
    return [*_named(number, f"GPU of rank {process.rank}, in the kernel window", number), *events] if events else []


def _machine(samples: list[vitals.Sample], shift: int, told: tuple[int, int]) -> list[Event]:
    """Counters of the machine."""
    events = _named(_MACHINE, "machine", _MACHINE)
    for sample in samples:
        at = round(sample.at / _NANO)
        if not told[0] <= at <= told[1]:
            continue
        values = {"cores busy, %": round(sample.cpu * 100, 1)}
        of_groups = {"cores of training": sample.training, "cores of workers": sample.workers}
        values |= {what: round(cores, 2) for what, cores in of_groups.items() if cores is not None}
        for place, gpu in enumerate(sample.gpus):
            known = {"power, W": gpu.power, "busy, %": None if gpu.busy is None else round(gpu.busy * 100, 1)}
            values |= {f"GPU {place} {what}": value for what, value in known.items() if value is not None}
        ts = (at + shift) / _MICRO
        events += [
            Event(name=name, ph="C", pid=_MACHINE, ts=ts, args={"value": value}) for name, value in values.items()
        ]
    return events if len(events) > 2 else []


def _within(intervals: Iterable[Interval], told: tuple[int, int]) -> Iterator[Interval]:
    return (interval for interval in intervals if told[0] <= interval.begin and interval.end <= told[1])


def _lasting(interval: Interval, pid: int, tid: int, shift: int, category: str, meaning: str = "") -> Event:
    return Event(
        name=interval.name,
        ph="X",
        pid=pid,
        tid=tid,
        ts=(interval.begin + shift) / _MICRO,
        dur=(interval.end - interval.begin) / _MICRO,
        cat=category,
        args={**({"is": meaning} if meaning else {}), **interval.facts},
    )


def _instant(name: str, at: int, pid: int, shift: int) -> Event:
    return Event(name=name, ph="i", pid=pid, tid=_MARKS, ts=(at + shift) / _MICRO, cat="mark", s="t")


def _named(pid: int, name: str, place: int) -> list[Event]:
    return [
        Event(name="process_name", ph="M", pid=pid, args={"name": name}),
        Event(name="process_sort_index", ph="M", pid=pid, args={"sort_index": place}),
    ]


def _track(pid: int, tid: int, name: str) -> list[Event]:
    return [
        Event(name="thread_name", ph="M", pid=pid, tid=tid, args={"name": name}),
        Event(name="thread_sort_index", ph="M", pid=pid, tid=tid, args={"sort_index": tid}),
    ]


def _about(run: RunFile, first: Trained, steps: range) -> dict[str, Any]:
    told = f"steps {steps.start} to {steps.stop - 1} of {first.iterations.count}"
    return {"command": run.command, "made by": "floorit", "steps": told}
