"""What is said of two runs, in words: for the terminal, for Markdown and for the page alike."""

from __future__ import annotations

import shlex
from typing import Any

from floorit.compare.comparison import Change, Comparison, Found, Phase
from floorit.compare.speed import Speed
from floorit.report.words import number, size
from floorit.stats import BLOCKS, Estimate, seconds

_SMALL = 0.005  # of the longer step: phases under this in both are gathered in one row
_PLACES = ("new in B", "gone in B", "in both")
_ABSENT, _ABSENT_FIX = "none, or not known", "as the program has it"
_FIXES = "fixes from outside"
_SHARES = ("busy_share", "queue_empty_share", "tensor_share", "mfu")
_NAMES = {
    "busy_share": "busy",
    "sample_seconds": "a sample takes",
    "collate_seconds": "collating a batch takes",
    "queue_empty_share": "queue empty when a batch was wanted",
    "supply": "the loader by itself could give",
    "power_watts": "power",
    "memory_peak": "memory peak",
    "kernels_per_step": "kernels a step",
    "tensor_share": "tensor cores, of kernel time",
    "mfu": "MFU, of the rate measured",
    "cores_allowed": "cores by affinity",
    "cores_quota": "cores by cgroup",
    "memory_limit": "memory by cgroup",
}


def differences(comparison: Comparison) -> list[tuple[str, list[Change]]]:
    """What is not the same in both, under its title; titles without any are left out."""
    told = (
        ("loader", comparison.workers),
        ("GPU", comparison.gpu),
        ("settings in force", comparison.settings),
        (_FIXES, comparison.fixes),
        ("machine and versions", comparison.environment),
        ("command", [comparison.commands] if comparison.commands is not None else []),
    )
    return [(title, changes) for title, changes in told if changes]


def alike(comparison: Comparison) -> list[str]:
    """What is only told where it differs, and does not."""
    unread = any("settings in force" in caveat for caveat in comparison.caveats)
    compared = (
        ["machine and versions", "command"] if unread else ["settings in force", "machine and versions", "command"]
    )
    differ = [title for title, _ in differences(comparison)]
    return [title for title in compared if title not in differ]


def cells(title: str, change: Change) -> tuple[str, str, str]:
    """The name of what changed, and both values."""
    absent = _ABSENT_FIX if title == _FIXES else _ABSENT
    a, b = (absent if value is None else _word(change.name, value) for value in (change.a, change.b))
    return _NAMES.get(change.name, change.name), a, b


def least(comparison: Comparison) -> float:
    """Seconds from which on a phase has a row of its own."""
    step = comparison.step
    return float(_SMALL * max(step.a, step.b))


def by_difference(comparison: Comparison) -> tuple[list[Phase], Phase | None]:
    """The phases, those that differ most first, and what is small in both together; None: there is none."""
    limit = least(comparison)
    shown = [phase for phase in comparison.ledger if max(phase.a, phase.b) >= limit]
    small = [phase for phase in comparison.ledger if 0 < max(phase.a, phase.b) < limit]
    a, b = (sum(getattr(phase, side) for phase in small) for side in ("a", "b"))
    rest = Phase(phase="the rest", a=a, b=b, difference=b - a) if small else None
    return sorted(shown, key=lambda phase: -abs(phase.difference)), rest


def findings(found: list[Found]) -> list[tuple[str, str]]:
    """All of them: what is new first, then what is gone."""
    return sorted(map(finding, found), key=lambda told: _PLACES.index(told[0]))


def finding(found: Found) -> tuple[str, str]:
    """Where a finding is, and what is said of it."""
    if found.a is None:
        return "new in B", f"{found.code}: {found.title}{_share(found.share_b)}{_first(found.b)}"
    if found.b is None:
        return "gone in B", f"{found.code}: {found.title}{_share(found.share_a)}{_first(found.a)}"
    shares = ""
    if found.share_a is not None and found.share_b is not None:
        shares = f" ({found.share_a:.0%}, then {found.share_b:.0%} of the step)"
    return "in both", f"{found.code}{shares}{_moved(found)}"


def verdict(speed: Speed) -> str:
    """How fast B was, with the interval."""
    ratio = speed.ratio
    spread = f"({ratio.low:.2f} to {ratio.high:.2f})"
    if speed.verdict == "unclear":
        why = "one run of each cannot tell that from 1" if ratio.low <= 1 <= ratio.high else "too little was recorded"
        return f"unclear: B is {ratio.value:.2f}x as fast {spread}; {why}"
    return f"{speed.verdict}: B is {ratio.value:.2f}x as fast {spread}"


def rate(estimate: Estimate, unit: str) -> str:
    """A speed with its interval."""
    return f"{number(estimate.value)} {unit}/s ({number(estimate.low)} to {number(estimate.high)})"


def rests_on(speed: Speed) -> str:
    """What the interval is made of."""
    within = f"{speed.within.low:.2f} to {speed.within.high:.2f}"
    more = ", and more for what is said below" if speed.is_disturbed else ""
    return (
        f"one run of each. By up to {BLOCKS} blocks of steps within each it would be {within}; {speed.run_to_run:.0%}"
        f" is added for what two runs of the same program differ by{more}. To claim less: floorit try"
    )


def signed(value: float) -> str:
    """A difference of seconds."""
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}" if value else "0"


def _share(share: float | None) -> str:
    return f" ({share:.0%} of the step)" if share is not None else ""


def _first(place: int | None) -> str:
    return "; the verdict" if place == 0 else ""


def _moved(found: Found) -> str:
    if (found.a == 0) == (found.b == 0):
        return _first(found.a)
    return "; now the verdict" if found.b == 0 else "; was the verdict"


def _word(name: str, value: Any) -> str:
    """A value as a person writes it."""
    if isinstance(value, list):
        return shlex.join(map(str, value)) if name == "command" else ", ".join(map(str, value))
    if isinstance(value, bool | str):
        return str(value)
    if name in _SHARES:
        return f"{value:.0%}"
    if name.endswith("_seconds"):
        return seconds(value)
    if name in ("memory", "memory_peak", "memory_limit", "shm"):
        return size(value)
    unit = {"power_watts": " W", "supply": " samples/s"}.get(name, "")
    return f"{number(value)}{unit}" if isinstance(value, float) else f"{value}{unit}"
