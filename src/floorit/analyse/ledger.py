"""Where a step's time went. Exclusive, and it adds up to the mean step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec
import numpy as np

from floorit.analyse import handover
from floorit.analyse.iterations import BETWEEN, EVAL, TRAIN, Iterations
from floorit.events import Process, Sample
from floorit.record import wire
from floorit.stats import Floats

# Phases as they are shown: in the order of a step, then what lies between steps, then the rest.
ORDER = (
    "data_wait",
    "h2d",
    "forward",
    "loss",
    "backward",
    "recompute",
    "grad_sync",
    "optimizer",
    "sync",
    "logging",
    "checkpoint",
    "eval",
    "epoch_gap",
    "other",
    "unattributed",
)
HOST_AHEAD = 2  # steps that the host may be ahead of the GPU: about as many launches wait for it
MOST_LINES = 5  # source lines named for a phase
_WAITING = ("data_wait", "epoch_gap")
AHEAD = 1.2  # the GPU's seconds of a step over the host's: more than the noise of both
ENOUGH_LOOKS = 20  # at the stack: fewer are said to be few
_EVAL = wire.PHASES.index("eval")
# What follows the last iteration is the program's end, not training, but for what has a name of its own.
_NAMED = [wire.PHASES.index(name) for name in ("logging", "checkpoint", "epoch_gap", "eval")]
_FROZEN = "<frozen "
_COMPREHENSIONS = re.compile(r"(\.<locals>)?\.?<(listcomp|setcomp|dictcomp|genexpr)>")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A source line and its share of the phase it stands under."""

    file: str
    line: int
    function: str
    share: float
    inside: str | None = None  # what that line was calling, where it is not the user's code


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """The function of the program's own that most looks found at work."""

    file: str
    line: int  # of its lines, the one that was found most often
    function: str
    inside: str | None  # what that line was calling, where it is not the user's code
    share: float  # of the looks: at its own lines
    whole: float  # with what it calls; no more than `share` where it leads to the rest of a step too
    looks: int  # that the shares are of


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One phase: seconds a step on the host's clock, and on the device's where there is one."""

    phase: str
    seconds: float
    share: float
    gpu_seconds: float | None
    where: list[Line]
    heaviest: Function | None = None
    bursts: float = 0.0  # seconds a step of it that come in few steps, and there for longer than others take as a whole


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The entries, and the mean step they add up to."""

    mean: float
    entries: list[Entry]
    looks: dict[str, list[Sample]]  # at the stack, by phase: what the lines rest on

    def seconds(self, *phases: str) -> float:
        """Seconds a step in these phases."""
        return sum(entry.seconds for entry in self.entries if entry.phase in phases)

    def share(self, *phases: str) -> float:
        """Their share of the mean step."""
        return self.seconds(*phases) / self.mean if self.mean else 0.0

    @property
    def samples(self) -> int:
        """How many looks the lines rest on."""
        return sum(map(len, self.looks.values()))

    @property
    def is_ahead_of_gpu(self) -> bool:
        """Whether the GPU needs longer for a step than the host took: then its queue was still filling up.

        Waits for data left out: few steps are marked on the GPU's clock, and a wait may be long in just these.
        """
        working = [entry for entry in self.entries if entry.phase not in _WAITING]
        return sum(entry.gpu_seconds or 0.0 for entry in working) > AHEAD * sum(entry.seconds for entry in working)

    def where(self, phase: str) -> list[Line]:
        """The lines of a phase, largest first."""
        return next((entry.where for entry in self.entries if entry.phase == phase), [])


def draw(process: Process, iterations: Iterations) -> Ledger:
    """The ledger of the iterations after warm-up."""
    spent, begin, end = _spent(process, iterations)
    count = max(len(iterations.after_warmup), 1)
    per_step = spent / count
    mean = float(per_step.sum())
    looks = _looks(process, iterations, begin, end)
    seconds = dict(zip(wire.PHASES, per_step.tolist(), strict=True))
    own = looks.get("other") or [  # too short for a look
        sample for sample, evaluates in _counted(process.stretches, process, iterations, begin, end) if not evaluates
    ]
    known = _attributed(own)
    seconds["unattributed"] = seconds["other"] * (1 - known)
    seconds["other"] *= known
    bursts = dict(zip(wire.PHASES, _bursts(process, iterations).tolist(), strict=True))
    bursts["unattributed"] = bursts["other"] * (1 - known)
    bursts["other"] *= known
    device = _device(process, iterations, spent)
    leading = handover.leading(looks)
    seen = {**looks, "other": own}
    entries = [
        Entry(
            phase=phase,
            seconds=seconds[phase],
            share=seconds[phase] / mean if mean else 0.0,
            gpu_seconds=device.get(phase) or None if device else None,
            where=lines(seen.get(phase, ())),
            heaviest=heaviest(seen.get(phase, ()), leading),
            bursts=bursts[phase],
        )
        for phase in ORDER
        if seconds[phase] > 0 or phase == "unattributed"
    ]
    return Ledger(mean=mean, entries=entries, looks=looks)


def _bursts(process: Process, iterations: Iterations) -> Floats:
    """Seconds a step by phase, beyond what the median step has of it and what may be hidden."""
    counts = (iterations.kind == TRAIN) & (iterations.of_row >= iterations.warmup) & ~iterations.windowed
    steps, of_step = np.unique(iterations.of_row[counts], return_inverse=True)
    spent = np.zeros((max(len(steps), 1), len(wire.PHASES)))
    np.add.at(spent, of_step, process.rows["seconds"][counts])
    hidden = HOST_AHEAD * float(np.median(spent.sum(axis=1)))
    beyond: Floats = np.maximum(spent - np.median(spent, axis=0) - hidden, 0.0).mean(axis=0)
    return beyond


def _looks(process: Process, iterations: Iterations, begin: float, end: float) -> dict[str, list[Sample]]:
    by_phase: dict[str, list[Sample]] = {}
    for sample, evaluates in _counted(process.samples, process, iterations, begin, end):
        by_phase.setdefault("eval" if evaluates else wire.PHASES[sample.phase], []).append(sample)
    return handover.resolve(by_phase)


def _spent(process: Process, iterations: Iterations) -> tuple[Floats, float, float]:
    """Seconds by phase after warm-up, and when that stretch began and ended."""
    rows, kind = process.rows, iterations.kind
    in_window = iterations.of_row >= iterations.warmup
    work = np.flatnonzero(in_window & (kind != BETWEEN))
    first, last = int(work[0]), int(work[-1])
    counts = ~iterations.windowed[first : last + 1]
    seconds = rows["seconds"][first : last + 1]
    evaluates = kind[first : last + 1] == EVAL
    spent: Floats = seconds[counts & ~evaluates].sum(axis=0, dtype=np.float64)
    spent[_EVAL] += seconds[counts & evaluates].astype(np.float64).sum()
    spent += after_training(process, iterations)[~iterations.windowed[last + 1 :]].sum(axis=0)
    return spent, float(process.starts()[first]), float(rows["end"][last])


def after_training(process: Process, iterations: Iterations) -> Floats:
    """Seconds by phase that count of the rows after the last one that trains or evaluates.

    Of logging no more than a row has had of it before: many a program ends with figures that it draws once.
    """
    seconds = process.rows["seconds"]
    last = int(np.flatnonzero(iterations.kind != BETWEEN)[-1])
    counted: Floats = np.zeros(seconds[last + 1 :].shape)
    counted[:, _NAMED] = seconds[last + 1 :, _NAMED]
    written = counted[:, wire.LOGGING].sum()
    usual = float(seconds[: last + 1, wire.LOGGING][iterations.of_row[: last + 1] >= 0].max())
    counted[:, wire.LOGGING] *= min(usual / written, 1.0) if written else 1.0
    return counted


def _counted(
    samples: list[Sample], process: Process, iterations: Iterations, begin: float, end: float
) -> list[tuple[Sample, bool]]:
    """Those after warm-up and outside of the kernel window, and whether each fell into evaluation.

    What follows the last batch of an evaluation is not part of it, as it is not in the seconds: see `_spent`.
    """
    within = [s for s in samples if begin <= s.at <= end]
    rows = np.searchsorted(process.rows["end"], [s.at for s in within])
    counts = ~iterations.windowed[rows]
    evaluates = iterations.kind[rows] == EVAL
    return [
        (sample, evaluated)
        for sample, counted, evaluated in zip(within, counts.tolist(), evaluates.tolist(), strict=True)
        if counted
    ]


def _attributed(samples: list[Sample]) -> float:
    """The share of the user's own code of which a line is known."""
    total = sum(s.weight for s in samples)
    return sum(s.weight for s in samples if s.user or s.leaf) / total if total else 0.0


def _device(process: Process, iterations: Iterations, spent: Floats) -> dict[str, float] | None:
    """Device seconds by phase of a step, from the rows that were marked; `spent` is the host's, of all rows.

    On both clocks a row begins where the one before it ended, so that all rows together are as long on either: the
    marked ones only say how the device's time is divided. Between iterations the device waits for the host, but for
    what it still had to do while the host was blocked there.
    """
    device = process.device
    seconds = process.rows["seconds"]
    marked = device[device["row"] < len(seconds)]
    in_training = (iterations.of_row >= iterations.warmup) & (iterations.kind == TRAIN) & ~iterations.windowed
    marked = marked[in_training[marked["row"]]]
    if not len(marked) or not marked["seconds"].any():
        return None
    count = max(len(iterations.after_warmup), 1)
    training = seconds[in_training].sum(axis=0, dtype=np.float64) / count
    between = np.maximum(spent / count - training, 0.0)
    between[_EVAL] = 0.0
    on_device = marked["seconds"].mean(axis=0, dtype=np.float64)
    caught_up = min(max(float(on_device.sum() - training.sum()), 0.0), float(between[wire.SYNC]))
    between[wire.SYNC] -= caught_up
    on_host = seconds[marked["row"]].mean(axis=0, dtype=np.float64)
    divided = _without_marks(on_device, on_host - training, float(training.sum()) + caught_up)
    return dict(zip(wire.PHASES, (divided + between).tolist(), strict=True))


def _without_marks(marked: Floats, longer: Floats, length: float) -> Floats:
    """A marked row on the device's clock as one without marks would be, which is of this length.

    Marks take time of the host. Where it is the limit, the device's row is longer by them, in the phases in which the
    host's is `longer`; where it is not, the device's row is as long as any other. Or shorter, where those that happen
    to be marked waited less for data than others do: what is missing belongs to the phases that the host had less of.
    """
    beyond = float(marked.sum()) - length
    differs = np.minimum(np.maximum(longer, 0.0), marked) if beyond > 0 else np.maximum(-longer, 0.0)
    rest = marked - differs * np.sign(beyond) * min(abs(beyond) / (float(differs.sum()) or 1.0), 1.0)
    whole: Floats = rest / rest.sum() * length
    return whole


def lines(samples: Iterable[Sample], most: int = MOST_LINES) -> list[Line]:
    """The source lines that were found most often. What is frozen into Python has no line that could be shown."""
    found: dict[tuple[str, int, str], dict[str | None, float]] = {}
    frozen = 0.0
    for sample in samples:
        place = sample.user or sample.leaf
        if place is not None and place.file.startswith(_FROZEN):
            frozen += sample.weight
        elif place is not None:
            inner = found.setdefault((place.file, place.line, place.function), {})
            inside = _inside(sample)
            inner[inside] = inner.get(inside, 0.0) + sample.weight
    total = frozen + sum(sum(inner.values()) for inner in found.values())
    largest = sorted(found.items(), key=lambda item: -sum(item[1].values()))[:most]
    return [
        Line(
            file=file,
            line=line,
            function=function,
            share=sum(inner.values()) / total,
            inside=max(inner, key=lambda inside: inner[inside]),
        )
        for (file, line, function), inner in largest
    ]


def heaviest(
    samples: Collection[Sample], leading: Collection[handover.Name] = (), besides: Collection[handover.Name] = ()
) -> Function | None:
    """The program's own function whose lines were found most often, but for those `besides`.

    `leading`: functions below which the rest of a step is, too.
    """
    at: dict[handover.Name, list[Sample]] = {}
    for sample in samples:
        place = sample.user
        if place is not None and handover.package(place.file) is None and (place.file, place.function) not in besides:
            at.setdefault((place.file, _written_in(place.function)), []).append(sample)
    if not at:
        return None
    name, own = max(at.items(), key=lambda item: _weight(item[1]))
    below = own if name in leading else [sample for sample in samples if name in _names(sample)]
    first, total = lines(own)[0], _weight(samples)
    return Function(
        file=first.file,
        line=first.line,
        function=name[1],
        inside=first.inside,
        share=_weight(own) / total,
        whole=_weight(below) / total,
        looks=len(samples),
    )


def _weight(samples: Iterable[Sample]) -> float:
    return sum(sample.weight for sample in samples)


def _names(sample: Sample) -> set[handover.Name]:
    """The functions that a look found on the stack."""
    places = (*sample.stack, *([sample.user] if sample.user is not None else []))
    return {(place.file, _written_in(place.function)) for place in places}


def _written_in(function: str) -> str:
    """The function that a line is part of; before Python 3.12, comprehensions were functions of their own."""
    return _COMPREHENSIONS.sub("", function)


def _inside(sample: Sample) -> str | None:
    """The library function that the user's line was in, if it was in one."""
    if sample.user is None or sample.leaf is None or sample.leaf == sample.user:
        return None
    return sample.leaf.function
