"""What to try next on a program, by its last run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from floorit.fixes import asked
from floorit.fixes.fix import CLAIMED, Fix, Known, Risk
from floorit.fixes.values import Value
from floorit.stats import Estimate

Goal = Literal["balanced", "speed"]
GOALS: dict[Goal, tuple[Risk, ...]] = {"balanced": ("exact", "rounding"), "speed": ("exact", "rounding", "order")}
# Of two fixes that should gain about as much, the one that does less to results is tried first.
_WORTH: dict[Risk, float] = {"exact": 1.0, "rounding": 0.9, "order": 0.8, "training": 0.5}


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A fix that should help."""

    code: str
    value: Value
    risk: Risk
    predicted: Estimate

    @property
    def worth(self) -> float:
        """What it should gain, for what it risks."""
        return (self.predicted.value - 1) * _WORTH[self.risk]


def find(
    known: Known, stack: dict[str, Value], tried: Collection[tuple[str, Value]], risks: Collection[Risk]
) -> list[Candidate]:
    """What can be applied from outside, should gain something, and is not there already; the best first."""
    found = [_candidate(fix, known) for fix in asked.APPLICABLE.values() if fix.risk in risks]
    fresh = [c for c in found if c is not None and stack.get(c.code) != c.value and (c.code, c.value) not in tried]
    return sorted(fresh, key=lambda candidate: -candidate.worth)


def _candidate(fix: Fix, known: Known) -> Candidate | None:
    said = fix.foretell(known)
    if isinstance(said, str) or said.value < CLAIMED:
        return None
    assert fix.takes is not None
    value = fix.value(known) if fix.value is not None else fix.takes.default
    return None if value is None else Candidate(code=fix.code, value=value, risk=fix.risk, predicted=said)
