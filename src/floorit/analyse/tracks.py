"""What happened when, moment by moment: tracks of intervals, for programs that draw time lines."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.iterations import BETWEEN, EVAL, TRAIN, Ints, Iterations
from floorit.analyse.kernels import kind_of
from floorit.analyse.trace import Trace
from floorit.analyse.watched import Clocks
from floorit.events import Process, Span
from floorit.record import wire

NOT_TOLD_APART = "not looked into"  # of a step that was timed as a whole
EVALUATION, BEFORE, AFTER = "evaluation", "before the first step", "between steps"
PASS, LEFT_OUT = "pass over data", "left out"  # names of facts
_NANO = 1e-9


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Something that lasted. Nanoseconds on the record's clock."""

    name: str
    begin: int
    end: int
    facts: dict[str, Any] = {}


def of_steps(process: Process, iterations: Iterations) -> list[Interval]:
    """Steps, evaluations and what lies between, one after the other."""
    begins, ends = _moments(process)
    kind, of_row = iterations.kind, iterations.of_row
    borders = np.flatnonzero(np.diff((of_row * 3 + kind) * 2 + iterations.windowed)) + 1
    first, last = np.append(0, borders), np.append(borders, len(kind)) - 1
    return [
        Interval(
            name=_name(int(kind[a]), int(of_row[a])),
            begin=int(begins[a]),
            end=int(ends[b]),
            facts=_facts(process, iterations, int(a)),
        )
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
        if ends[b] > begins[a]
    ]


def _moments(process: Process) -> tuple[Ints, Ints]:
    """When each row began and ended, in nanoseconds."""
    begins, ends = (np.rint(times / _NANO).astype(np.int64) for times in (process.starts(), process.rows["end"]))
    return begins, ends


def _name(kind: int, step: int) -> str:
    if kind == TRAIN:
        return f"step {step}"
    return EVALUATION if kind == EVAL else AFTER if step >= 0 else BEFORE


def _facts(process: Process, iterations: Iterations, row: int) -> dict[str, Any]:
    """What is in it, and why the ledger leaves it out."""
    step = int(iterations.of_row[row])
    facts: dict[str, Any] = {}
    if iterations.kind[row] != BETWEEN:
        facts[PASS] = int(process.rows["iterator"][row])
    if iterations.kind[row] == TRAIN and iterations.samples[step]:
        facts["samples"] = int(iterations.samples[step])
    if 0 <= step < iterations.warmup:
        facts[LEFT_OUT] = "warm-up"
    elif iterations.windowed[row]:
        facts[LEFT_OUT] = "slowed down by a window"
    return facts


def of_phases(process: Process, spans: list[Span]) -> list[Interval]:
    """The phases that spans of a process were: exclusive, in order, and as long together as its rows are."""
    rows = process.rows
    _, ends = _moments(process)
    spans = sorted(spans, key=lambda span: span.begin)
    of_row = np.searchsorted(ends, [span.end for span in spans])
    naps, exhausted = (rows["flags"] & replay.NAP) > 0, rows["opened"] == replay.EXHAUSTED
    found: list[Interval] = []
    last_row = -1
    for span, row in zip(spans, of_row.tolist(), strict=True):
        if row == len(rows):
            break  # of a row that is not over: which phase it was is not settled
        name = _phase(span, bool(naps[row]), bool(exhausted[row]))
        if found and row == last_row and found[-1].name == name and found[-1].end == span.begin:
            found[-1] = msgspec.structs.replace(found[-1], end=span.end)
        else:
            at = {"at": f"{span.place.file}:{span.place.line}"} if span.place is not None else {}
            found.append(Interval(name=name, begin=span.begin, end=span.end, facts=at))
        last_row = row
    return found


def _phase(span: Span, naps: bool, exhausted: bool) -> str:
    """Its name as in the ledger: what a pass that has no more batches is asked for is the gap between two passes."""
    if naps and span.phase == wire.OTHER:
        return NOT_TOLD_APART
    if exhausted and span.phase == wire.DATA_WAIT:
        return wire.PHASES[wire.EPOCH_GAP]
    return wire.PHASES[span.phase]


def of_workers(shared: Process) -> dict[int, list[list[Interval]]]:
    """Of each worker by its number: the batches that it made, each with its samples and collating inside."""
    found: dict[int, list[list[Interval]]] = {}
    for end, pid, samples, worker, fetching, collating, _ in shared.fetches.tolist():
        at = [round(moment / _NANO) for moment in (end - collating - fetching, end - collating, end)]
        parts = [
            Interval(name="batch", begin=at[0], end=at[2], facts={"samples": samples, "process": pid}),
            Interval(name="samples", begin=at[0], end=at[1]),
            Interval(name="collate", begin=at[1], end=at[2]),
        ]
        found.setdefault(worker, []).append([part for part in parts if part.end > part.begin])
    return {worker: [batch for batch in batches if batch] for worker, batches in found.items()}


def of_gpu(trace: Trace, clocks: list[list[int]]) -> dict[tuple[int, int], list[list[Interval]]]:
    """Of each device and stream: what the kernel window saw on it."""
    to_log = Clocks([[there, here] for here, there in clocks])
    work = trace.work
    columns = zip(*(c.tolist() for c in (work.name, work.begin, work.end, work.device, work.lane)), strict=True)
    found: dict[tuple[int, int], list[list[Interval]]] = {}
    for number, begin, end, device, stream in columns:
        name, since = work.names[number], to_log(begin)
        lasting = Interval(name=name, begin=since, end=since + end - begin, facts={"kind": kind_of(name)})
        found.setdefault((device, stream), []).append([lasting])
    return found


def lanes(groups: list[list[Interval]]) -> list[list[Interval]]:
    """Groups, of which the first of each spans the others, on as few tracks as keep them from overlapping.

    A kernel may begin before the one in front of it on its stream is done, where it was launched so; workers of two
    loaders have the same numbers.
    """
    found: list[list[Interval]] = []
    free: list[int] = []  # from when on each is
    for group in sorted(groups, key=lambda group: group[0].begin):
        lane = next((place for place, end in enumerate(free) if end <= group[0].begin), len(found))
        if lane == len(found):
            found.append([])
            free.append(0)
        found[lane] += group
        free[lane] = group[0].end
    return found
