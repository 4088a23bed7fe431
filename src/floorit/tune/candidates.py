"""What to try next on a program, by its last run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from floorit.fixes import asked
from floorit.fixes.fix import CLAIMED, Fix, Known, Risk
from floorit.fixes.values import Value
from floorit.stats import Estimate

Goal = Literal["balanced", "speed", "memory"]
GOALS: dict[Goal, tuple[Risk, ...]] = {
    "balanced": ("exact", "rounding"),
    "speed": ("exact", "rounding", "order"),
    "memory": ("exact", "rounding"),
}
# Of two fixes that should gain about as much, the one that does less to results is tried first.
_WORTH: dict[Risk, float] = {"exact": 1.0, "rounding": 0.9, "order": 0.8, "training": 0.5}
# Of what may take less memory, what takes away most in most programs: activations, then the optimizer's state.
_SAVES_MOST = ("recompute", "amp", "optimizer-8bit")
BATCH = "batch"  # has a search of its own for its value: sizes.py
Key: TypeAlias = frozenset[tuple[str, Value]]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A fix that should help; or several, of which one makes room for another."""

    changes: dict[str, Value]
    risk: Risk
    predicted: Estimate | None  # None: what it takes of memory is not predicted

    @property
    def key(self) -> Key:
        """By which it is known again."""
        return key(self.changes)

    @property
    def worth(self) -> float:
        """What it should gain, for what it risks."""
        gain = self.predicted.value - 1 if self.predicted is not None else _expected(self.changes)
        return gain * _WORTH[self.risk]


def _expected(changes: dict[str, Value]) -> float:
    """A rank among what may save memory, as nothing is predicted of it."""
    return max(1 / (1 + _SAVES_MOST.index(code)) if code in _SAVES_MOST else 0.1 for code in changes)


def key(changes: dict[str, Value]) -> Key:
    """The same changes, in whichever order."""
    return frozenset(changes.items())


def find(
    known: Known, stack: dict[str, Value], tried: Collection[Key], risks: Collection[Risk], goal: Goal
) -> list[Candidate]:
    """What can be applied from outside, should help, and is not there already; the best first."""
    fixes = [fix for fix in asked.APPLICABLE.values() if fix.risk in risks]
    savers = [saver for fix in fixes if (saver := _saver(fix, known)) is not None]
    if goal == "memory":
        found = savers
    else:
        found = [one for fix in fixes if fix.code != BATCH and (one := _candidate(fix, known)) is not None]
        found += [bundle for fix in fixes for saver in savers if (bundle := _bundle(fix, saver, known)) is not None]
    # What is so many times as rare already is not made rarer by so many times: that would be of the program untouched.
    turned = {fix.code for fix in fixes if fix.by_setting and fix.code in stack}
    fresh = [
        one for one in found if one.key not in tried and not one.key & key(stack) and not turned & set(one.changes)
    ]
    return sorted(fresh, key=lambda candidate: -candidate.worth)


def savers(known: Known, stack: dict[str, Value], risks: Collection[Risk]) -> list[Candidate]:
    """What may make room for something else."""
    return find(known, stack, (), risks, "memory")


def with_size(size: int, predicted: Estimate, saver: Candidate | None = None) -> Candidate:
    """Batches of another size, with what makes room for them."""
    changes: dict[str, Value] = {**(saver.changes if saver is not None else {}), BATCH: size}
    return Candidate(changes=changes, risk="training", predicted=predicted)


def made_up_for(slow: Candidate, speed: float, fast: Candidate) -> Candidate:
    """What saves memory and is too slow by itself, `speed` times as fast, with what makes up for it."""
    assert fast.predicted is not None
    gain = fast.predicted
    together = Estimate(value=speed * gain.value, low=speed * gain.low, high=speed * gain.high, n=gain.n)
    return Candidate(changes={**slow.changes, **fast.changes}, risk=_riskier(slow.risk, fast.risk), predicted=together)


def _riskier(one: Risk, other: Risk) -> Risk:
    return max((one, other), key=list(_WORTH).index)


def _candidate(fix: Fix, known: Known) -> Candidate | None:
    said = fix.foretell(known)
    if isinstance(said, str) or said.value < CLAIMED:
        return None
    assert fix.takes is not None
    value = fix.value(known) if fix.value is not None else fix.takes.default
    return None if value is None else Candidate(changes={fix.code: value}, risk=fix.risk, predicted=said)


def _saver(fix: Fix, known: Known) -> Candidate | None:
    value = fix.saves(known) if fix.saves is not None else None
    return None if value is None else Candidate(changes={fix.code: value}, risk=fix.risk, predicted=None)


def _bundle(fix: Fix, saver: Candidate, known: Known) -> Candidate | None:
    """A fix for which there is no room as it is, with what makes room for it: predicted together."""
    if fix.predict_with_room is None or fix.value is None or not isinstance(fix.foretell(known), str):
        return None
    said = fix.predict_with_room(known)
    if isinstance(said, str) or said.value < CLAIMED or fix.code in saver.changes:
        return None
    changes = {**saver.changes, fix.code: fix.value(known)}
    return Candidate(changes=changes, risk=_riskier(fix.risk, saver.risk), predicted=said)
