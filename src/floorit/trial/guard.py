"""Whether a change left the program's results alone: its losses, compared by what the change is allowed to do.

| risk | passes |
|---|---|
| exact | losses bit for bit, where the program against itself is so; else within what that shows |
| rounding | losses no further off than a rounding error of this size takes them, seen in a run with one planted |
| order | the course of the losses within what their own scatter, and that of the program against itself, allows |
| training | told, not judged: losses that are no numbers, or end above where the program's own begin, are a failure |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from floorit.fixes.values import Value
from floorit.stats import Floats
from floorit.trial.arms import Arm
from floorit.trial.state import State
from floorit.trial.trial import Trial

Status = Literal["same", "rounding", "alike", "changed", "broken", "unverified"]

FEWEST = 8  # losses that a comparison rests on at the least
# One run with one planted error shows one course of many: others go a few times as far.
ROOM = 8.0
# Windows of the course, and how many standard errors their means may lie apart. Four of them in four windows by chance:
# 2.5 in 10,000 tries.
WINDOWS, ERRORS = 4, 4.0
# Half the distance of a number just over 1 from its neighbours, by what is computed in: the largest rounding error.
_FLOAT32, _HALF = 2.0**-24, {"bf16": 2.0**-8, "fp16": 2.0**-11}
_TF32 = 2.0**-11
_TINY = 1e-12  # a loss of zero has no parts, means without scatter no standard error

_Said: TypeAlias = tuple[Status, str]


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the results."""

    status: Status
    reason: str
    losses: int = 0  # that were compared
    furthest: float | None = None  # the largest difference of two losses, in parts of their size

    @property
    def is_failure(self) -> bool:
        """Whether the losses are no numbers, or do not fall any more."""
        return self.status == "broken"


def compare(state: State, arm: Arm) -> Parity:
    """An arm's losses beside those of the program as it is."""
    before, after = _losses(state.of(state.base)), _losses(state.of(arm))
    if not state.of(arm):
        return Parity(status="unverified", reason="no run with it came to its end")
    if not before or not after:
        return Parity(status="unverified", reason="no losses were captured")
    found = [_compare_rank(state, arm, rank) for rank in range(min(len(before[0]), len(after[0])))]
    return max(found, key=lambda parity: _SEVERITY.index(parity.status))


_SEVERITY: tuple[Status, ...] = ("same", "rounding", "alike", "unverified", "changed", "broken")


def is_decided(state: State, arm: Arm) -> bool:
    """Whether the results are known to have changed where they must not: more trials would not change that."""
    parity = compare(state, arm)
    return parity.is_failure or (parity.status == "changed" and arm.risk != "training")


def wanted_unit(state: State, arm: Arm) -> float | None:
    """The size of a rounding error whose effect has to be seen to judge this arm; None: nothing has to."""
    size = unit(arm.fixes)
    if arm.risk != "rounding" or key(size) in state.yardsticks:
        return None
    before, after = _losses(state.of(state.base)), _losses(state.of(arm))
    return size if before and after and not _is_one([*before, *after]) else None


def unit(fixes: dict[str, Value]) -> float:
    """The relative size of the largest rounding error that these fixes bring."""
    units = [_FLOAT32]
    if "amp" in fixes:
        units.append(_HALF.get(str(fixes["amp"]), max(_HALF.values())))
    if "tf32" in fixes:
        units.append(_TF32)
    return max(units)


def key(size: float) -> str:
    """As it stands in a file."""
    return repr(size)


# -- one rank ------------------------------------------------------------------------------------------------------


def _losses(trials: list[Trial]) -> list[list[list[float | None]]]:
    return [trial.losses for trial in trials if trial.losses]


def _is_one(runs: list[list[list[float | None]]]) -> bool:
    """Whether all runs have the same losses, as far as each goes."""
    return all(
        list(these[: len(those)]) == list(those[: len(these)])
        for run in runs[1:]
        for these, those in zip(runs[0], run, strict=False)
    )


def _compare_rank(state: State, arm: Arm, rank: int) -> Parity:
    a = [run[rank] for run in _losses(state.of(state.base)) if rank < len(run)]
    b = [run[rank] for run in _losses(state.of(arm)) if rank < len(run)]
    count = min(map(len, [*a, *b]))
    if count < FEWEST:
        return Parity(status="unverified", reason=f"only {count} losses were captured in each run", losses=count)
    before, after = (np.array([_numbers(run[:count]) for run in runs]) for runs in (a, b))
    if not np.isfinite(before).all():
        return Parity(status="unverified", reason="the program's own losses are not all finite", losses=count)
    if not np.isfinite(after).all():
        step = int(np.flatnonzero(~np.isfinite(after).all(axis=0))[0])
        return Parity(status="broken", reason=f"the loss of backward pass {step + 1} is not a number", losses=count)
    return _judge(state, arm, before, after, rank)


def _numbers(losses: Sequence[float | None]) -> list[float]:
    return [math.nan if loss is None else loss for loss in losses]


def _judge(state: State, arm: Arm, before: Floats, after: Floats, rank: int) -> Parity:
    off = np.abs(after - before[0]).max(axis=0)
    parts = off / np.maximum(np.abs(before[0]), _TINY)
    status, reason = _said(state, arm, before, after, off, rank)
    return Parity(status=status, reason=reason, losses=before.shape[1], furthest=float(parts.max()))


def _said(state: State, arm: Arm, before: Floats, after: Floats, off: Floats, rank: int) -> _Said:
    if len(before) < 2:
        return "unverified", "the program ran only once as it is"
    if not off.any():
        return "same", "every loss is the same, bit for bit"
    if arm.risk == "exact":
        return _exact(before, off)
    if arm.risk == "rounding":
        return _rounding(state, unit(arm.fixes), before, off, rank)
    return _course(before, after, is_judged=arm.risk == "order")


def _exact(before: Floats, off: Floats) -> _Said:
    scatter = _scatter(before)
    if scatter.any():  # where its runs happen to agree, the next might not, by one rounding
        limit = _grown(np.maximum(scatter, _FLOAT32 * np.abs(before[0])))
        return _within(off, limit, "the program against itself, which is not bit for bit the same", passes="alike")
    step = int(np.flatnonzero(off)[0]) + 1
    same = "where the program against itself is bit for bit the same"
    return "changed", f"the losses differ from backward pass {step} on, {same}"


def _rounding(state: State, size: float, before: Floats, off: Floats, rank: int) -> _Said:
    shaken = state.yardsticks.get(key(size))
    course = shaken.losses[rank] if shaken is not None and rank < len(shaken.losses) else []
    count = min(len(course), len(off))
    if count < FEWEST:
        return "unverified", "how far a rounding error takes the losses was not seen"
    planted = np.abs(np.array(_numbers(course[:count])) - before[0, :count])
    if not np.isfinite(planted).all():
        return "unverified", "a rounding error alone makes the losses no numbers"
    least = size * np.abs(before[0, :count])
    limit = _grown(np.maximum(np.maximum(planted, _scatter(before)[:count]), least))
    return _within(off[:count], limit, f"a rounding error of {size:.1g}", passes="rounding")


def _within(off: Floats, limit: Floats, of_what: str, passes: Status) -> _Said:
    beyond = np.flatnonzero(off > ROOM * limit)
    if not len(beyond):
        return passes, f"the losses stay within {ROOM:g} times what {of_what} does"
    step = int(beyond[0])
    times = off[step] / limit[step] if limit[step] else math.inf
    return (
        "changed",
        f"from backward pass {step + 1} on the losses are {times:.3g} times as far off as {of_what} takes them",
    )


def _scatter(before: Floats) -> Floats:
    """How far the program's own runs lie apart, at each step."""
    apart: Floats = before.max(axis=0) - before.min(axis=0)
    return apart


def _grown(apart: Floats) -> Floats:
    """Differences grow as training goes on, and cross zero by chance: as large as they have been so far."""
    grown: Floats = np.maximum.accumulate(apart)
    return grown


# -- the course ------------------------------------------------------------------------------------------------------


def _course(before: Floats, after: Floats, *, is_judged: bool) -> _Said:
    a, b = _windows(before), _windows(after)
    if _ends_above(b, a) and not _ends_above(a, a):
        return "broken", "the loss ends above where the program's own begins"
    (means_a, errors_a), (means_b, errors_b) = a, b
    apart = np.abs(means_b - means_a) / np.maximum(np.hypot(errors_a, errors_b), _TINY)
    if (apart <= ERRORS).all():
        return "alike", "the losses take the same course, up to their scatter"
    window = int(apart.argmax())
    by = means_b[window] / means_a[window] - 1 if means_a[window] else math.inf
    where = f"{by:+.1%} in part {window + 1} of {WINDOWS} of the course, {apart[window]:.3g} standard errors"
    told = "" if is_judged else ", as this change may"
    return "changed", f"the losses differ{told}: {where}"


def _windows(runs: Floats) -> tuple[Floats, Floats]:
    """The mean loss in each part of the course, and its standard error: by the scatter from one step to the next, which
    a trend does not add to, and by that from run to run."""
    means, errors = [], []
    for part in np.array_split(runs, WINDOWS, axis=1):
        within = float((np.diff(part, axis=1) ** 2).mean()) / 2 / part.shape[1] if part.shape[1] > 1 else 0.0
        between = float(part.mean(axis=1).var(ddof=1)) if len(runs) > 1 else 0.0
        means.append(float(part.mean()))
        errors.append(math.sqrt(within + between))
    return np.array(means), np.array(errors)


def _ends_above(windows: tuple[Floats, Floats], beginning: tuple[Floats, Floats]) -> bool:
    """Whether the last part of a course lies surely above the first of another."""
    (means, errors), (first_means, first_errors) = windows, beginning
    return bool(means[-1] - first_means[0] > ERRORS * math.hypot(errors[-1], first_errors[0]))
