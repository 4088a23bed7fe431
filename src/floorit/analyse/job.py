"""The whole job as it is configured: how many epochs and steps, and how long that takes, with what lies between."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse import rare
from floorit.analyse.iterations import BETWEEN, EVAL, TRAIN, Ints, Iterations
from floorit.declared import Declaration, Told
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Estimate, Floats, mean

TRAINING, EVALUATION, CHECKPOINTS = "training", "evaluation", "checkpoints"
GAPS, REST, START = "starting the loader again", "the rest between steps", "start-up and warm-up"
AROUND = "before and after training"
_RARE = {rare.EVALUATES: EVALUATION, rare.SAVES: CHECKPOINTS}
_ENOUGH = 2  # times that something must have happened for its distance to be known
_GAP, _SAVE, _EVAL = wire.EPOCH_GAP, wire.CHECKPOINT, wire.EVAL


class Unknown(Exception):
    """Why there is no projection."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the job's time."""

    what: str
    share: float
    seconds: float


class Faster(msgspec.Struct, frozen=True, kw_only=True):
    """The whole job with one fix, as far as that is foretold."""

    set_to: str  # the fix, as `--fix` takes it
    seconds: Estimate


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job from its first line to its last."""

    epochs: int | None  # None: it is counted in steps
    steps_per_epoch: int | None
    steps: int
    seconds: Estimate
    shares: list[Share]
    how: str  # what the counts and the time rest on
    times: dict[str, float] = {}  # how often it evaluates and saves, where that is known
    with_fixes: list[Faster] = []  # those that promise most, each by itself

    def at(self, speed: float) -> float:
        """Seconds, where all that lies between its first step and its last is so many times as fast."""
        once = sum(share.seconds for share in self.shares if share.what in (START, AROUND))
        return once + (self.seconds.value - once) / speed


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    epochs: int | None
    steps_per_epoch: int | None
    steps: int
    how: str


class _Times(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens between steps, each time that it was seen: after how many steps, and for how long."""

    after: list[int]
    seconds: Floats


def measured(process: Process, iterations: Iterations, seconds: float) -> Job:
    """The job of a program that ran to its end: nothing is projected."""
    counts = _counts(process, iterations)
    same = counts[0] if counts and len(set(counts)) == 1 else None
    spent = _spent(process, iterations)
    spent[AROUND] = max(seconds - sum(spent.values()), 0.0)
    whole = Estimate(value=seconds, low=seconds, high=seconds, n=iterations.count)
    by_step = rare.by_step(process, iterations)
    return Job(
        epochs=len(counts) or None,
        steps_per_epoch=same,
        steps=iterations.count,
        seconds=whole,
        shares=_shares(spent),
        how="as it ran, to its end",
        times={_RARE[phase]: float((each > 0).sum()) for phase, each in by_step.items() if phase in _RARE},
    )


def project(process: Process, iterations: Iterations, told: Told | None, launched: float | None = None) -> Job:
    """The job that a program was told to do and did not finish; `launched` in seconds since the epoch.

    Raises Unknown where it cannot be told.
    """
    plan = _plan(process, iterations, told)
    if plan.steps < iterations.count:
        raise Unknown(f"{iterations.count} steps were seen, more than {plan.how} makes")
    pace = mean(_pure(process, iterations)[iterations.warmup :][~iterations.slowed[iterations.warmup :]], least=0.0)
    if pace is None:
        raise Unknown("no step was seen after warm-up")
    complete = _complete(process, iterations)
    parts, times = {TRAINING: _times(pace, plan.steps)}, dict[str, float]()
    for what, seen in _between(process, iterations).items():
        often = _how_often(seen, complete, plan)
        each = mean(seen.seconds, least=0.0)
        if often and each is not None:
            parts[what] = _times(each, often)
            times |= {what: often} if what in _RARE.values() else {}
    parts[START] = _start(process, iterations, pace.value, launched)
    not_in_it = "" if complete else "; no epoch was seen to its end, so what comes between epochs is not in it"
    return Job(
        epochs=plan.epochs,
        steps_per_epoch=plan.steps_per_epoch,
        steps=plan.steps,
        seconds=_sum(list(parts.values()), pace.n),
        shares=_shares({what: part.value for what, part in parts.items()}),
        how=f"{plan.how}; projected from {iterations.count} steps{not_in_it}",
        times=times,
    )


# -- how much ---------------------------------------------------------------------------------------------------


def _plan(process: Process, iterations: Iterations, told: Told | None) -> _Plan:
    epochs, steps = _declared(told, "epochs"), _declared(told, "max_steps")
    if epochs is not None and steps is not None and epochs.by == steps.by:
        raise Unknown(f"both epochs ({epochs.at}) and steps ({steps.at}) are declared")
    by_steps = steps is not None and (epochs is None or epochs.by == "default")
    chosen = steps if by_steps else epochs
    if chosen is None:
        raise Unknown("neither epochs nor steps are declared where they can be read")
    if by_steps and not math.isclose(iterations.accumulation, 1.0, rel_tol=0.01):
        raise Unknown(f"whether the steps of {chosen.at} are batches or optimizer steps is not known")
    per_epoch = _per_epoch(process, iterations)
    many = int(chosen.value or 0)
    if by_steps:
        return _Plan(epochs=None, steps_per_epoch=per_epoch, steps=many, how=f"{many} steps by {chosen.at}")
    if per_epoch is None:
        raise Unknown("how many steps an epoch has is not known")
    how = f"{many} epochs by {chosen.at}"
    return _Plan(epochs=many, steps_per_epoch=per_epoch, steps=many * per_epoch, how=how)


def _declared(told: Told | None, setting: str) -> Declaration | None:
    """The declaration that counts: by an argument before a file before a default."""
    about = [d for d in told.declarations if d.setting == setting and d.scope == "train"] if told else []
    about = [d for d in about if isinstance(d.value, int) and not isinstance(d.value, bool) and d.value > 0]
    first = next((by for by in ("argument", "file", "default") if any(d.by == by for d in about)), None)
    counted = [d for d in about if d.by == first]
    if len({d.value for d in counted}) > 1:
        raise Unknown(f"{setting} is declared in several ways: {', '.join(d.at for d in counted)}")
    return counted[0] if counted else None


def _per_epoch(process: Process, iterations: Iterations) -> int | None:
    """As passes were that are over; before the first is, by the loader's length."""
    if iterations.border != "batches":
        return None
    over = set(_counts(process, iterations)[:-1])
    if len(over) > 1:
        raise Unknown("epochs differ in their number of steps")
    if over:
        return over.pop()
    loaders = process.loaders_of(process.trained_iterators())
    return loaders[0]["length"] if len(loaders) == 1 else None


def _counts(process: Process, iterations: Iterations) -> list[int]:
    """Steps in each pass over the training data, in order."""
    if iterations.border != "batches":
        return []
    batches = _batches(process, iterations)
    _, first, counts = np.unique(batches, return_index=True, return_counts=True)
    changes = 1 + int((np.diff(batches) != 0).sum())
    if changes != len(counts):
        raise Unknown("passes over several loaders take turns")
    return counts[np.argsort(first)].tolist()  # type: ignore[no-any-return]


def _batches(process: Process, iterations: Iterations) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The pass that each step's batch came from."""
    rows = process.rows
    opened = (rows["opened"] == replay.BATCH) & np.isin(rows["iterator"], process.trained_iterators())
    return rows["iterator"][opened & (iterations.kind == TRAIN)]  # type: ignore[no-any-return]


def _complete(process: Process, iterations: Iterations) -> list[int]:
    """Steps in the epochs that another followed: with all that belongs to them, they are over."""
    return _counts(process, iterations)[:-1]


# -- how long ---------------------------------------------------------------------------------------------------


def _lengths(process: Process) -> Floats:
    lengths: Floats = process.rows["end"] - process.starts()
    return lengths


def _pure(process: Process, iterations: Iterations) -> Floats:
    """Seconds of each step without what happens only now and then."""
    rows, trains = process.rows, iterations.kind == TRAIN
    own = _lengths(process) - rows["seconds"][:, [_GAP, _SAVE, _EVAL]].sum(axis=1, dtype=np.float64)
    return _by_step(iterations.of_row[trains], own[trains], iterations.count)


def _by_step(of_row: Ints, seconds: Floats, count: int) -> Floats:
    return np.bincount(of_row, weights=seconds, minlength=count).astype(np.float64)


def _by_what(process: Process, iterations: Iterations) -> dict[str, Floats]:
    """Seconds of each row that are not of a step."""
    seldom = rare.by_row(process, iterations)
    evaluation, saves = seldom[rare.EVALUATES], seldom[rare.SAVES]
    gaps = np.where(iterations.kind == EVAL, 0.0, process.rows["seconds"][:, _GAP].astype(np.float64))
    rest = np.where(iterations.kind == BETWEEN, _lengths(process) - saves - gaps - evaluation, 0.0)
    return {EVALUATION: evaluation, CHECKPOINTS: saves, GAPS: gaps, REST: rest}


def _between(process: Process, iterations: Iterations) -> dict[str, _Times]:
    """What happened between the first step and the last, by the step that it came after."""
    count = iterations.count
    inside = (iterations.of_row >= 0) & (iterations.of_row < count - 1)
    found = {}
    for what, seconds in _by_what(process, iterations).items():
        each = _by_step(iterations.of_row[inside], seconds[inside], count)
        after = np.flatnonzero(each > 0)
        found[what] = _Times(after=after.tolist(), seconds=each[after])
    return found


def _how_often(seen: _Times, complete: list[int], plan: _Plan) -> float:
    """How many times it will happen in the whole job: as in the epochs that are over, else by its distance."""
    if complete:
        within = sum(after < sum(complete) for after in seen.after)
        return within / sum(complete) * plan.steps
    if len(seen.after) >= _ENOUGH:
        return plan.steps * (len(seen.after) - 1) / (seen.after[-1] - seen.after[0])
    return 0.0


def _start(process: Process, iterations: Iterations, pace: float, launched: float | None) -> Estimate:
    """What came before the first step, and what warm-up took more than other steps do."""
    before = _unrecorded(process, launched) + float(_lengths(process)[iterations.of_row < 0].sum())
    warmup = float(_pure(process, iterations)[: iterations.warmup].sum()) - iterations.warmup * pace
    seconds = before + max(warmup, 0.0)
    return Estimate(value=seconds, low=seconds, high=seconds, n=1)


def _unrecorded(process: Process, launched: float | None) -> float:
    """From the program's launch to the import of torch, by the clock on the wall."""
    facts = process.facts
    if launched is None or "wall" not in facts:
        return 0.0
    return max(float(facts["wall"] - facts["clock"] + facts["started"]) - launched, 0.0)


def _spent(process: Process, iterations: Iterations) -> dict[str, float]:
    """Seconds by part, as they were."""
    inside = iterations.of_row >= 0
    spent = {what: float(each[inside].sum()) for what, each in _by_what(process, iterations).items()}
    return {TRAINING: float(_pure(process, iterations).sum()), **spent}


def _times(each: Estimate, many: float) -> Estimate:
    return Estimate(value=each.value * many, low=each.low * many, high=each.high * many, n=each.n)


def _sum(parts: list[Estimate], n: int) -> Estimate:
    """Parts that were observed apart: their intervals add up as the sides of a right angle do."""
    value = sum(part.value for part in parts)
    half = math.sqrt(sum(((part.high - part.low) / 2) ** 2 for part in parts))
    low = max(value - half, sum(part.low for part in parts))
    return Estimate(value=value, low=low, high=value + half, n=n)


def _shares(spent: dict[str, float]) -> list[Share]:
    total = sum(spent.values())
    parts = [Share(what=what, share=seconds / total, seconds=seconds) for what, seconds in spent.items() if seconds > 0]
    return sorted(parts, key=lambda part: -part.share)
