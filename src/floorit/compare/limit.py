"""`--fail-if slower=5%`: what a check that nobody watches may fail for."""

from __future__ import annotations

import re

import msgspec

from floorit.compare.speed import Speed
from floorit.errors import UsageError

_WRITTEN = re.compile(r"slower=(\d+(?:\.\d+)?)%?")


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How much less speed than before is too little: 0.05 is 5 %."""

    slower: float


def parse(text: str) -> Limit:
    """As it is typed: slower=5%."""
    found = _WRITTEN.fullmatch(text.replace(" ", ""))
    if found is None or not 0 <= float(found[1]) < 100:
        raise UsageError(f"--fail-if {text} makes no sense; write: --fail-if slower=5%")
    return Limit(slower=float(found[1]) / 100)


def is_exceeded(limit: Limit, speed: Speed) -> bool:
    """Whether even the near end of the interval lies beyond it."""
    return speed.verdict == "slower" and speed.ratio.high < 1 - limit.slower
