"""What limits the run, with evidence and the place in the source."""

from __future__ import annotations

import msgspec

from floorit.analyse.input import Workers
from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Ledger, Line
from floorit.analyse.settings import Setting
from floorit.events import Process


class FixAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """A change that should help. Filled by the planner."""

    code: str
    risk: str
    effort: str


class NotAdvised(msgspec.Struct, frozen=True, kw_only=True):
    """A popular change that would not help, and why."""

    code: str
    reason: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that costs time. `bound` is the speed-up if that cost vanished: nothing can gain more."""

    code: str
    title: str
    share: float | None
    share_is_least: bool = False  # the cost is more, by a part that cannot be told
    bound: float | None
    evidence: list[str]
    where: list[Line]
    fixes: list[FixAdvice] = []
    not_advised: list[NotAdvised] = []


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule may look at."""

    process: Process
    iterations: Iterations
    ledger: Ledger
    workers: Workers | None
    on_gpu: bool
    settings: list[Setting] = []


def bound_of(share: float) -> float:
    """The speed-up if a share of the step vanished."""
    return 1 / max(1 - share, 1e-3)
