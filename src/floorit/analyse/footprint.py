"""What memory is for at its peak, on the GPU or the host, and what it would be with another batch or setting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np

from floorit.analyse import timeline
from floorit.analyse.iterations import EVAL, TRAIN, Iterations
from floorit.analyse.machine import Machine
from floorit.analyse.timeline import Actions, Ints, Timeline
from floorit.events import Headroom, Process
from floorit.record import wire

# What there is besides what timeline names: what is not known to be anything of these; what blocks are larger than was
# asked for; what steps that were not watched, or evaluation, had more.
UNATTRIBUTED, ROUNDING, ELSEWHERE = "unattributed", "rounding", "other steps"
REST = "rest"  # activations outside of all parts
NEARLY = 0.99  # of the peak: when so much was reached, the peak was
TIMES = (0.5, 2.0, 3.0, 4.0)  # batches that are foretold, as multiples of the present one
_ADAM = ("Adam", "AdamW")
# Bytes that are left of four: one, and a scale of 32 bits for each block of 256 numbers (bitsandbytes' default).
EIGHT_BITS = (1 + 4 / 256) / 4

Where = Literal["gpu", "host"]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What some of the memory is for. Bytes."""

    what: str
    bytes: int
    share: float  # of the peak
    dtypes: dict[str, int] = {}  # the same by type, where that is known


class PartBytes(msgspec.Struct, frozen=True, kw_only=True):
    """What a part of the model keeps for the backward pass."""

    name: str
    bytes: int


class Foretold(msgspec.Struct, frozen=True, kw_only=True):
    """The peak with another batch."""

    times: float  # the present batch
    samples: float | None
    bytes: int


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of the program would do to the peak."""

    code: str  # of the fix
    value: str | None
    bytes: int  # more at the peak; negative: less
    is_bound: bool = False  # whether it is only known to be no better than that
    how: str


class Worst(msgspec.Struct, frozen=True, kw_only=True):
    """When the peak was reached."""

    when: Literal["training", "warm-up", "evaluation", "training or evaluation"]
    first_step: int  # between these steps: the allocator is asked now and then
    last_step: int
    samples: int | None  # of the largest batch among them


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory ledger. Bytes; None: it is not known, and `missing` says why."""

    where: Where
    peak: int  # that tensors had on the GPU; on a CPU, that the process had
    ledger: list[Share]  # adds up to the peak
    activations: list[PartBytes] = []  # by part of the model, most first
    steps: int  # that were watched
    step_peaks: list[int] = []  # of these
    phase: str | None = None  # in which they had most
    batch: float | None = None  # samples in a step of this process
    fixed: int | None = None  # of the peak, what does not grow with the batch
    per_sample: float | None = None
    predicted: list[Foretold] = []
    effects: list[Effect] = []
    total: int | None = None  # that the GPU has
    reserved: int | None = None  # most that torch's allocator had from the GPU
    cache: int | None = None  # of it, what no tensor had when tensors had most
    fragments: int | None = None  # of the cache, free pieces of blocks in use, near the peak
    not_torch: int | None = None  # that the GPU had in use besides: CUDA, its libraries
    retries: int | None = None  # times that the allocator had to give its cache back to go on
    worst: Worst | None = None
    evaluation: int | None = None  # most that tensors had in evaluation
    evaluation_is_most: bool = False  # whether it is only known to have been no more than that

    def of(self, what: str) -> int:
        """Bytes for one thing."""
        return sum(share.bytes for share in self.ledger if share.what == what)


def on_gpu(
    process: Process,
    iterations: Iterations,
    window: dict[str, Any],
    actions: Actions,
    batch: float | None,
    total: int | None,
    machine: Machine | None,
) -> Memory | str:
    """By the steps of the window, and by what the allocator said all the time; or why nothing can be told."""
    if not actions.times or not actions.borders:
        return "the watched steps took no memory: a captured graph has its own"
    line = Timeline(process, iterations, window, actions)
    watched = [step for step in line.steps if len(step)]
    if not watched:
        return "no whole step lies inside the window"
    inside = np.concatenate(watched)
    at = int(inside[np.argmax(line.total[inside])])
    _, allocated, requested, _, split = line.border_at(at)
    rounding = allocated - requested
    seen = int(line.total[at]) + rounding
    peak = max(process.memory_peak or 0, seen)
    known = _known(line, at)
    known[UNATTRIBUTED] = {"": int(line.total[at]) - _sum(known)}
    known[ROUNDING] = {"": rounding}
    known[ELSEWHERE] = {"": peak - seen}
    scaling = line.scaling()
    model = _Model(line, inside, scaling, rounding, peak - seen)
    reserved_most = max(
        (int(note["reserved_peak"]) for note in process.memory if "reserved_peak" in note), default=None
    )
    return Memory(
        where="gpu",
        peak=peak,
        ledger=_ledger(known, peak),
        activations=_by_part(line, at, window["parts"]),
        steps=len(watched),
        step_peaks=[int(line.total[step].max()) + rounding for step in watched],
        phase=wire.PHASES[line.phase_of(at)],
        batch=batch,
        fixed=peak - int(scaling[at]),
        per_sample=float(scaling[at]) / batch if batch else None,
        predicted=[
            Foretold(times=times, samples=times * batch if batch else None, bytes=model.at(times))
            for times in TIMES
            if batch is None or times * batch >= 1
        ],
        effects=_effects(process, window, model, line, batch),
        total=total,
        reserved=reserved_most,
        cache=max(reserved_most - peak, 0) if reserved_most is not None else None,
        fragments=split,
        not_torch=_not_torch(machine, reserved_most),
        retries=max((int(note["retries"]) for note in process.memory if "retries" in note), default=None),
        worst=_worst(process, iterations),
        **_evaluation(process, iterations),
    )


def on_host(
    process: Process,
    window: dict[str, Any],
    passes: list[list[tuple[int, int]]],
    batch: float | None,
    headroom: Headroom | None,
) -> Memory | str:
    """On a CPU: what is held, what a backward pass was saved for, and what the process has besides."""
    resident = headroom.training_most if headroom is not None else None
    if resident is None:
        return "the memory of the process was not read while it ran: train longer"
    known: dict[str, dict[str, int]] = {}
    for _, size, what, dtype in window["held"]:
        types = known.setdefault(what, {})
        types[dtype] = types.get(dtype, 0) + size
    largest = max(passes, key=lambda saved: sum(size for _, size in saved), default=[])
    known[timeline.ACTIVATIONS] = {"": sum(size for _, size in largest)}
    known[UNATTRIBUTED] = {"": resident - _sum(known)}
    saved = sum(size for _, size in largest)
    return Memory(
        where="host",
        peak=resident,
        ledger=_ledger(known, resident),
        activations=_named(dict(largest), window["parts"]),
        steps=len(passes),
        batch=batch,
        fixed=None,
        per_sample=saved / batch if batch else None,
        effects=_of_state(process, window),
    )


# -- what it is for ------------------------------------------------------------------------------------------------


def _known(line: Timeline, at: int) -> dict[str, dict[str, int]]:
    """Bytes at one action, by what they are for and by type."""
    known = line.held(at)
    step = line.step_of(at)
    for piece in line.living(at):
        is_old = piece.step < step and piece.what in (timeline.ACTIVATIONS, timeline.BATCH)
        types = known.setdefault(timeline.LEFT_OVER if is_old else piece.what, {})
        types[""] = types.get("", 0) + piece.bytes
    before = line.earlier(at)
    if before:
        types = known.setdefault(timeline.LEFT_OVER, {})
        types[""] = types.get("", 0) + before
    return known


def _sum(known: dict[str, dict[str, int]]) -> int:
    return sum(sum(types.values()) for types in known.values())


def _ledger(known: dict[str, dict[str, int]], peak: int) -> list[Share]:
    shares = [
        Share(
            what=what,
            bytes=sum(types.values()),
            share=sum(types.values()) / peak if peak else 0.0,
            dtypes={dtype: size for dtype, size in types.items() if dtype},
        )
        for what, types in known.items()
    ]
    return sorted((share for share in shares if share.bytes), key=lambda share: -share.bytes)


def _by_part(line: Timeline, at: int, parts: list[dict[str, Any]]) -> list[PartBytes]:
    step, by_part = line.step_of(at), dict[int, int]()
    for piece in line.living(at):
        if piece.what == timeline.ACTIVATIONS and piece.step == step:
            by_part[piece.part] = by_part.get(piece.part, 0) + piece.bytes
    return _named(by_part, parts)


def _named(by_part: dict[int, int], parts: list[dict[str, Any]]) -> list[PartBytes]:
    if not parts:
        return []
    named = [PartBytes(name=parts[n]["name"] if n >= 0 else REST, bytes=size) for n, size in by_part.items() if size]
    return sorted(named, key=lambda part: -part.bytes)


# -- what it would be ----------------------------------------------------------------------------------------------


class _Model:
    """The most that there would be in the watched steps, if at each moment some of it were larger or smaller."""

    def __init__(self, line: Timeline, inside: Ints, scaling: Ints, rounding: int, elsewhere: int) -> None:
        self._total, self._inside, self._scaling = line.total, inside, scaling
        self._rounding, self._elsewhere = rounding, elsewhere
        self.peak = self.at(1.0)

    def at(self, times: float) -> int:
        """With a batch so many times as large."""
        grown = self._total + np.round((times - 1) * self._scaling).astype(np.int64)
        return int(grown[self._inside].max()) + self._rounding + round(times * self._elsewhere)

    def more(self, besides: Ints) -> int:
        """What the peak would grow by, with so much more at each moment."""
        return int((self._total + besides)[self._inside].max()) + self._rounding + self._elsewhere - self.peak


def _effects(
    process: Process, window: dict[str, Any], model: _Model, line: Timeline, batch: float | None
) -> list[Effect]:
    """What fixes would do to the peak."""
    found = [Effect(code="batch", value="x2", bytes=model.at(2) - model.peak, how="twice the batch")]
    if batch is None or batch >= 2:
        found.append(Effect(code="batch", value="x0.5", bytes=model.at(0.5) - model.peak, how="half the batch"))
    kept = line.kept()
    if kept.any():
        how = "what was seen to be computed again, kept instead"
        found.append(Effect(code="recompute", value="off", bytes=model.more(kept), how=how))
    gradients = line.of(timeline.GRADIENTS)
    if len(gradients):
        absent = gradients.max() - gradients
        how = "gradients stay from one batch to the next"
        found.append(Effect(code="accumulate", value="2", bytes=model.more(absent), how=how))
    found += _of_halves(process, window, model, line)
    return [*found, *_of_state(process, window)]


def _of_halves(process: Process, window: dict[str, Any], model: _Model, line: Timeline) -> list[Effect]:
    """Of activations of single precision, half is left at the best, and each parameter is there once more."""
    dtypes = {dtype for _, _, what, dtype in window["held"] if what == timeline.PARAMETERS}
    if any(reading.get("autocast") for reading in process.readings) or dtypes != {"float32"}:
        return []
    copies = sum(size * count for size, count in window["sizes"]) * timeline.HALF
    fewer = copies - line.of(timeline.ACTIVATIONS) // 2
    how = "at the best: every activation of half the size, and a copy of the parameters"
    return [Effect(code="amp", value="bf16", bytes=model.more(fewer), is_bound=True, how=how)]


def _of_state(process: Process, window: dict[str, Any]) -> list[Effect]:
    names = {str(optimizer.get("name")) for optimizer in process.optimizers.values()}
    if not names & set(_ADAM) or not window["large_state"]:
        return []
    fewer = -round(window["large_state"] * (1 - EIGHT_BITS))
    return [
        Effect(code="optimizer-8bit", value=None, bytes=fewer, how="a quarter of the state is left, and its scales")
    ]


# -- in the whole run ----------------------------------------------------------------------------------------------


def _not_torch(machine: Machine | None, reserved: int | None) -> int | None:
    """What the GPU had in use besides what torch had, where this program had it to itself."""
    used = machine.gpu.memory_peak if machine is not None and machine.gpu is not None else None
    alone = machine is not None and machine.gpu_others == 0
    return max(used - reserved, 0) if alone and used is not None and reserved is not None else None


def _between(process: Process, iterations: Iterations, note: dict[str, Any]) -> Ints:
    """Rows of the time that a reading tells of: since the one before it."""
    rows: Ints = np.flatnonzero((process.rows["end"] > note["since"]) & (process.starts() < note["at"]))
    return rows[iterations.of_row[rows] >= 0]


def _worst(process: Process, iterations: Iterations) -> Worst | None:
    notes = [note for note in process.memory if "at" in note]
    if not notes:
        return None
    most = max(int(note["peak"]) for note in notes)
    reached = next(note for note in notes if note["peak"] >= NEARLY * most)
    rows = _between(process, iterations, reached)
    if not len(rows):
        return None
    numbers = iterations.of_row[rows]
    kinds = set(iterations.kind[rows].tolist())
    trains = TRAIN in kinds
    when: Any = "training or evaluation" if trains and EVAL in kinds else "training" if trains else "evaluation"
    if when == "training" and numbers.max() < iterations.warmup:
        when = "warm-up"
    samples = int(iterations.samples[numbers].max())
    return Worst(
        when=when,
        first_step=int(numbers.min()),
        last_step=int(numbers.max()),
        samples=samples or None if trains else None,
    )


def _evaluation(process: Process, iterations: Iterations) -> dict[str, Any]:
    """The peak of evaluation, where it was one; else what it was no more than."""
    if not (iterations.kind == EVAL).any():
        return {}
    notes = [note for note in process.memory if "at" in note]
    own = 0
    for before, note in pairwise(notes):
        kinds = set(iterations.kind[_between(process, iterations, note)].tolist())
        if note["peak"] > before["peak"] and EVAL in kinds and TRAIN not in kinds:
            own = int(note["peak"])
    return {"evaluation": own or process.memory_peak, "evaluation_is_most": not own}
