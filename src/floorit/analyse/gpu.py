"""What the GPU did in the kernel window: busy and idle time, why it was idle, and which kernels it ran."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit.analyse.host import COMM, DATA_WAIT, H2D, LAUNCH, OTHER, SYNC, Segment, timeline
from floorit.analyse.iterations import Iterations
from floorit.analyse.kernels import kind_of, uses_tensor_cores
from floorit.analyse.ledger import Entry, Ledger, Line, lines
from floorit.analyse.precision import TypeShare
from floorit.analyse.trace import Events, Ints, Trace
from floorit.analyse.watched import Clocks, Stretch, host_seconds, joined, whole_steps
from floorit.events import Process, Sample, Span
from floorit.record import wire

CAUSES = (DATA_WAIT, LAUNCH, SYNC, H2D, COMM, OTHER)
OWN = (wire.OTHER, wire.LOGGING)  # phases in which the host neither issues work nor waits for it
MOST_KERNELS = 10  # named in the report
_FROM_HOST = "HtoD"  # in the trace's name of a copy
_NANO = 1e-9


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Time in which nothing ran on the GPU, by what held it up."""

    cause: str
    share: float  # of a step
    seconds: float  # a step
    host: str  # the phase that the host was in for most of it; `gpu`: all was launched, the GPU itself waited
    where: list[Line]
    phases: dict[str, float] = {}  # of it, by the phase that the host was in


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels and copies of one kind."""

    kind: str
    seconds: float  # a step
    share: float  # of the time of all kernels and copies, added up
    count: float  # a step


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one kernel."""

    name: str
    kind: str
    seconds: float
    share: float
    count: float


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU's part of a step; busy and idle shares add up to 1."""

    steps: int = 0  # that were watched
    watched_seconds: float | None = None  # how long each took, being watched
    watched_wait: float | None = None  # of it the host waited for data; first as watched, then `in_usual_step`
    watched_own: dict[str, float] = {}  # the same for the phases of `OWN`
    waits: dict[str, float] = {}  # in which the host was blocked until the GPU was done, as part of another phase
    step_seconds: float | None = None  # of which the shares are: first as watched, then `in_usual_step`
    busy_share: float | None = None
    idle: list[Idle] = []
    copies_alone_share: float | None = None  # of a step: copies ran and no kernel; part of busy
    uploads_alone_share: float | None = None  # of these, copies from the host
    comm_alone_share: float | None = None  # of a step: communication ran and nothing else; part of busy
    mfu: float | None = None  # of the rate that this GPU reaches in large products: what the model used, in a mean step
    hfu: float | None = None  # the same with what was computed again
    tensor_share: float | None = None  # of the time of all kernels and copies: on tensor cores, by their names
    dtype_shares: list[TypeShare] = []  # in which type of number kernels computed
    kinds: list[Kind] = []
    kernels: list[Kernel] = []
    kernels_per_step: float | None = None
    launches_per_step: float | None = None
    memory_peak: int | None = None  # bytes that tensors had at most
    power_watts: float | None = None
    power_limit_watts: float | None = None


def examine(process: Process, iterations: Iterations, window: dict[str, Any], trace: Trace) -> Gpu | str:
    """The GPU's time in the whole steps of a window, or why it cannot be told."""
    steps = whole_steps(process, iterations, *window["measured"])
    if not steps:
        return "no whole step lies inside the kernel window"
    to_trace = Clocks(window["clocks"])
    stretches = [(to_trace(begin), to_trace(end)) for begin, end in joined(steps)]
    work = of_main_device(trace.work)
    if not len(inside_of(work, stretches)):
        return "no kernel was seen in the kernel window"
    if not len(trace.calls) or trace.calls.begin[-1] < stretches[-1][1]:
        return "the trace of the kernel window ends too early"
    stretches = on_gpu(stretches, work, trace.calls)
    measured = _measure(len(steps), stretches, work, trace.calls, to_trace.spans(process.spans))
    waited, *own = (host_seconds(process, iterations, phase, *window["measured"]) for phase in (wire.DATA_WAIT, *OWN))
    names = [wire.PHASES[phase] for phase in OWN]
    return msgspec.structs.replace(measured, watched_wait=waited, watched_own=dict(zip(names, own, strict=True)))


def in_usual_step(gpu: Gpu, busy: float, step: float, ledger: Ledger) -> Gpu:
    """The same for a step that is not watched, in which the GPU works for `busy` seconds.

    To watch makes launches slower and leaves kernels as they are, so that a watched GPU idles more.
    """
    if gpu.step_seconds is None or not step:
        return gpu
    waits, own = ledger.seconds(DATA_WAIT), own_seconds(ledger.entries)
    usual = usual_idle(gpu, max(step - busy, 0.0), waits, own)
    known = {idle.cause: idle for idle in gpu.idle}
    missed = {phase: seconds - gpu.watched_own.get(phase, 0.0) for phase, seconds in own.items()}
    idle = [
        _usual(known.get(cause), cause, phases, step, ledger, missed if cause == OTHER else {})
        for cause, phases in sorted(usual.items(), key=lambda item: -sum(item[1].values()))
    ]
    as_long = gpu.step_seconds / step
    return msgspec.structs.replace(
        gpu,
        watched_seconds=gpu.step_seconds,
        watched_wait=waits,
        watched_own=own,
        step_seconds=step,
        busy_share=1 - sum(i.share for i in idle),
        idle=idle,
        copies_alone_share=(gpu.copies_alone_share or 0.0) * as_long,
        uploads_alone_share=(gpu.uploads_alone_share or 0.0) * as_long,
        comm_alone_share=(gpu.comm_alone_share or 0.0) * as_long,
    )


def own_seconds(entries: Iterable[Entry]) -> dict[str, float]:
    """Seconds of a step in the phases of `OWN`, by the ledger."""
    found = {wire.PHASES[phase]: 0.0 for phase in OWN}
    for entry in entries:
        phase = "other" if entry.phase == "unattributed" else entry.phase
        if phase in found:
            found[phase] += entry.seconds
    return found


def _usual(
    watched: Idle | None, cause: str, phases: dict[str, float], step: float, ledger: Ledger, missed: dict[str, float]
) -> Idle:
    """Idle time of a usual step; where the window has missed most of it, the ledger says where it is spent."""
    spent = sum(phases.values())
    host = max(phases, key=lambda phase: phases[phase])
    is_unseen = 2 * missed.get(host, 0.0) > phases[host]
    return Idle(
        cause=cause,
        share=spent / step,
        seconds=spent,
        host=host,
        where=ledger.where(host) if watched is None or is_unseen else watched.where,
        phases={phase: seconds / spent for phase, seconds in phases.items()},
    )


def usual_idle(gpu: Gpu, left: float, waits: float, own: dict[str, float]) -> dict[str, dict[str, float]]:
    """By cause and the host's phase, the seconds of a step that leaves the GPU idle for `left`.

    Waiting for data comes in bursts, which the few steps of a window may have missed, or met: it is taken from the
    ledger (`waits`), and as much of it is idle time as it was there. So does what the program does in every so many
    steps: what the ledger has more of it (`own`) than the window, the GPU is idle for. The other causes share the rest
    as they did.
    """
    watched = {idle.cause: idle for idle in gpu.idle if idle.share}
    seconds = {cause: idle.share * (gpu.step_seconds or 1.0) for cause, idle in watched.items()}
    waited = gpu.watched_wait
    data, unseen = 0.0, dict[str, float]()
    if watched and waited is not None:
        felt = min(seconds.pop(DATA_WAIT, 0.0) / waited, 1.0) if waited else 1.0
        data = min(felt * waits, left) if seconds else left
        unseen = {phase: max(own.get(phase, 0.0) - met, 0.0) for phase, met in gpu.watched_own.items()}
        fits = min((left - data) / sum(unseen.values()), 1.0) if any(unseen.values()) and seconds else 0.0
        unseen = {phase: spent * fits for phase, spent in unseen.items() if spent * fits > 0}
    rest, total = left - data - sum(unseen.values()), sum(seconds.values())
    found = {
        cause: {phase: rest * spent / total * share for phase, share in watched[cause].phases.items()}
        for cause, spent in seconds.items()
        if rest > 0
    }
    if data > 0:
        found[DATA_WAIT] = {DATA_WAIT: data}
    for phase, spent in unseen.items():
        others = found.setdefault(OTHER, {})
        others[phase] = others.get(phase, 0.0) + spent
    return found


def _measure(count: int, stretches: list[Stretch], work: Events, calls: Events, spans: list[Span]) -> Gpu:
    total = sum(end - begin for begin, end in stretches)
    gaps = list(gaps_of(work, stretches))
    idle = sum(end - begin for begin, end, _ in gaps)
    pieces = pieces_of(gaps, work, calls, timeline(spans, calls, work))
    kinds = np.array([kind_of(name) for name in work.names])
    uploads = np.array([_FROM_HOST in name for name in work.names], bool)
    inside = inside_of(work, stretches)
    per_step = _NANO / count
    added = int(_lengths(inside, stretches).sum())
    return Gpu(
        steps=count,
        step_seconds=total * per_step,
        busy_share=1 - idle / total,
        idle=_idle(pieces, total, per_step),
        copies_alone_share=_alone(work, kinds[work.name] == "copies", stretches, idle) / total,
        uploads_alone_share=_alone(work, uploads[work.name], stretches, idle) / total,
        comm_alone_share=_alone(work, kinds[work.name] == "communication", stretches, idle) / total,
        tensor_share=_tensor(inside, stretches) / added,
        kinds=_kinds(inside, stretches, per_step, count),
        kernels=_kernels(inside, stretches, per_step, count),
        kernels_per_step=int((kinds[inside.name] != "copies").sum()) / count,
        launches_per_step=_launch_count(inside, calls) / count,
    )


# -- which stretch of the trace ------------------------------------------------------------------------------------


def on_gpu(stretches: list[Stretch], work: Events, calls: Events) -> list[Stretch]:
    """Stretches of the host's time as the GPU has them: a step is over there when all that was launched in it is done.

    Where the host runs ahead, that is long after the host went on.
    """
    launched = launches(work, calls).begin
    order = np.argsort(launched, kind="stable")[(launched < 0).sum() :]  # where the launch was seen
    launched, done = launched[order], np.maximum.accumulate(work.end[order])

    def reached(moment: int) -> int:
        before = int(np.searchsorted(launched, moment))
        return max(moment, int(done[before - 1])) if before else moment

    return [(reached(begin), reached(end)) for begin, end in stretches]


def of_main_device(work: Events) -> Events:
    """Only what ran on the GPU that worked most."""
    if not len(work):
        return work
    devices, which = np.unique(work.device, return_inverse=True)
    busiest = devices[np.bincount(which, weights=work.end - work.begin).argmax()]
    return work.take(work.device == busiest)


def inside_of(work: Events, stretches: list[Stretch]) -> Events:
    touches = np.zeros(len(work), bool)
    for begin, end in stretches:
        touches |= (work.end > begin) & (work.begin < end)
    return work.take(touches)


def _lengths(work: Events, stretches: list[Stretch]) -> Ints:
    """Nanoseconds of each that lie inside the stretches."""
    length = np.zeros(len(work), np.int64)
    for begin, end in stretches:
        length += np.maximum(np.minimum(work.end, end) - np.maximum(work.begin, begin), 0)
    return length


# -- busy and idle -------------------------------------------------------------------------------------------------


def gaps_of(work: Events, stretches: Iterable[Stretch]) -> Iterator[tuple[int, int, int]]:
    """Begin and end of each stretch in which nothing ran, and the number of the work that ended it (-1: none did)."""
    for begin, end in stretches:
        touching = np.flatnonzero((work.end > begin) & (work.begin < end))
        begins = np.maximum(work.begin[touching], begin)
        reached = np.maximum.accumulate(np.append(begin, np.minimum(work.end[touching], end)))
        for i in np.flatnonzero(begins > reached[:-1]).tolist():
            yield int(reached[i]), int(begins[i]), int(touching[i])
        if reached[-1] < end:
            following = int(np.searchsorted(work.begin, end))
            yield int(reached[-1]), end, following if following < len(work) else -1


def _alone(work: Events, chosen: NDArray[np.bool_], stretches: list[Stretch], idle: int) -> int:
    """Nanoseconds in which only the chosen ran."""
    return sum(end - begin for begin, end, _ in gaps_of(work.take(~chosen), stretches)) - idle


class Piece(msgspec.Struct, frozen=True):
    """Idle time of one cause, on the trace's clock; the phase the host was in, and what it was at."""

    cause: str
    begin: int
    end: int
    phase: str
    at: Segment | None = None

    @property
    def nanoseconds(self) -> int:
        return self.end - self.begin


def pieces_of(gaps: list[tuple[int, int, int]], work: Events, calls: Events, host: list[Segment]) -> list[Piece]:
    """Every gap, booked to what the host was doing until it had launched the work that ended the gap."""
    launched = launches(work, calls).end
    begins = [segment.begin for segment in host]
    is_comm = [kind_of(name) == "communication" for name in work.names]
    pieces: list[Piece] = []
    for begin, end, ender in gaps:
        issued = int(launched[ender]) if ender >= 0 and launched[ender] >= 0 else end
        if issued <= begin:
            pieces.append(Piece(COMM if is_comm[work.name[ender]] else OTHER, begin, end, "gpu"))
        else:
            nearby = host[max(bisect_right(begins, begin) - 1, 0) : bisect_left(begins, min(issued, end))]
            pieces += _until_issued(begin, min(issued, end), end, nearby)
    return [piece for piece in pieces if piece.nanoseconds > 0]


def _until_issued(begin: int, issued: int, end: int, host: list[Segment]) -> Iterator[Piece]:
    """One gap: what the host was at until the launch, and how long the launched work took to begin.

    Where the gap began while the host was blocked until the GPU was done, it had to fill an empty queue: then issuing
    is part of what the blocking call costs.
    """
    blocked = host[0] if host and host[0].begin <= begin < host[0].end and host[0].cause == SYNC else None
    now, phase, last = begin, "unknown", None
    for segment in host:
        if segment.end <= now:
            continue
        yield Piece(OTHER, now, min(segment.begin, issued), "unknown")
        upto = min(segment.end, issued)
        since = max(now, segment.begin)
        if segment.cause == LAUNCH and blocked is not None:
            yield Piece(SYNC, since, upto, segment.phase, blocked)
        else:
            yield Piece(segment.cause, since, upto, segment.phase, segment)
        now, phase, last = max(now, upto), segment.phase, segment
    yield Piece(OTHER, now, issued, "unknown")
    yield Piece(LAUNCH if blocked is None else SYNC, issued, end, phase, blocked or last)


class Launches(msgspec.Struct, frozen=True):
    """When the call that launched each piece of work began and returned, and its thread; -1 where it was not seen."""

    begin: Ints
    end: Ints
    lane: Ints


def launches(work: Events, calls: Events) -> Launches:
    """The calls that launched the work."""
    order = np.argsort(calls.correlation, kind="stable")
    known = calls.correlation[order]
    at = np.minimum(np.searchsorted(known, work.correlation), len(known) - 1)
    found = (known[at] == work.correlation) & (work.correlation >= 0)
    return Launches(*(np.where(found, times[order][at], -1) for times in (calls.begin, calls.end, calls.lane)))


def _idle(pieces: list[Piece], total: int, per_step: float) -> list[Idle]:
    """By cause, the longest first."""
    found = []
    for cause in CAUSES:
        own = [piece for piece in pieces if piece.cause == cause]
        nanoseconds = sum(piece.nanoseconds for piece in own)
        phases = Counter[str]()
        for piece in own:
            phases[piece.phase] += piece.nanoseconds
        if nanoseconds:
            [(host, _)] = phases.most_common(1)
            share, seconds = nanoseconds / total, nanoseconds * per_step
            within = {phase: spent / nanoseconds for phase, spent in phases.items()}
            found.append(Idle(cause=cause, share=share, seconds=seconds, host=host, where=_where(own), phases=within))
    return sorted(found, key=lambda idle: -idle.share)


def _where(pieces: list[Piece]) -> list[Line]:
    """The lines that the host was at; their shares are of all the pieces, those without a line included."""
    known = [(piece, piece.at.place) for piece in pieces if piece.at is not None and piece.at.place is not None]
    share = sum(piece.nanoseconds for piece, _ in known) / sum(piece.nanoseconds for piece in pieces)
    found = lines(Sample(0.0, 0, 0, place, place, piece.nanoseconds) for piece, place in known)
    return [msgspec.structs.replace(line, share=line.share * share) for line in found]


# -- kernels -------------------------------------------------------------------------------------------------------


def _tensor(work: Events, stretches: list[Stretch]) -> int:
    uses = np.array([uses_tensor_cores(name) for name in work.names], bool)
    return int(_lengths(work, stretches)[uses[work.name]].sum())


def _by_name(work: Events, stretches: list[Stretch]) -> list[tuple[str, int, int]]:
    """Name, nanoseconds and how many, the longest first."""
    size = len(work.names)
    seconds = np.bincount(work.name, weights=_lengths(work, stretches), minlength=size)
    counts = np.bincount(work.name, minlength=size)
    found = zip(work.names, seconds.astype(np.int64).tolist(), counts.tolist(), strict=True)
    return sorted((row for row in found if row[2]), key=lambda row: -row[1])


def _kernels(work: Events, stretches: list[Stretch], per_step: float, steps: int) -> list[Kernel]:
    found = _by_name(work, stretches)
    added = sum(ns for _, ns, _ in found)
    return [
        Kernel(name=name, kind=kind_of(name), seconds=ns * per_step, share=ns / added, count=count / steps)
        for name, ns, count in found[:MOST_KERNELS]
    ]


def _kinds(work: Events, stretches: list[Stretch], per_step: float, steps: int) -> list[Kind]:
    totals: dict[str, list[int]] = {}
    for name, ns, count in _by_name(work, stretches):
        entry = totals.setdefault(kind_of(name), [0, 0])
        entry[0] += ns
        entry[1] += count
    added = sum(ns for ns, _ in totals.values())
    return [
        Kind(kind=kind, seconds=ns * per_step, share=ns / added, count=count / steps)
        for kind, (ns, count) in sorted(totals.items(), key=lambda item: -item[1][0])
    ]


def _launch_count(work: Events, calls: Events) -> int:
    """Calls that launched the work."""
    return int(np.isin(calls.correlation, work.correlation[work.correlation >= 0]).sum())
