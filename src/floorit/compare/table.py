"""Two runs side by side, as text for a terminal."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit.compare.comparison import Change, Comparison, Found, Phase
from floorit.compare.speed import Speed
from floorit.report.words import PHASES, number, relative, size
from floorit.stats import BLOCKS, Estimate, seconds

SMALL = 0.005  # of the longer step: phases under this in both are gathered in one row
_COLOURS = {"faster": "green", "slower": "red", "unclear": "yellow"}
_ABSENT = {"settings in force": "none, or not known", "fixes from outside": "as the program has it"}
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


def render(comparison: Comparison) -> RenderableType:
    """The speed first, then where it comes from, then what was not the same."""
    parts: list[RenderableType] = [Text(), _heads(comparison), Text(), *_speed(comparison), Text()]
    parts += [_ledger(comparison), Text(), *_findings(comparison.findings)]
    for title, changes in (
        ("loader", comparison.workers),
        ("GPU", comparison.gpu),
        ("settings in force", comparison.settings),
        ("fixes from outside", comparison.fixes),
        ("machine and versions", comparison.environment),
        ("command", [comparison.commands] if comparison.commands is not None else []),
    ):
        parts += _changes(title, changes)
    same = [name for name, changes in _compared(comparison) if not changes]
    if same:
        parts.append(Text(f"the same in both: {', '.join(same)}", style="dim"))
    return Group(*parts)


def _compared(comparison: Comparison) -> list[tuple[str, object]]:
    """What is only told where it differs."""
    unread = any("settings in force" in caveat for caveat in comparison.caveats)
    settings = [] if unread else [("settings in force", comparison.settings)]
    return [*settings, ("machine and versions", comparison.environment), ("command", comparison.commands)]


def _grid() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))  # so that what wraps stays under what it belongs to
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _heads(comparison: Comparison) -> RenderableType:
    table = _grid()
    table.add_row("A", Text(relative(comparison.a)))
    table.add_row("B", Text(relative(comparison.b)))
    return table


def _speed(comparison: Comparison) -> list[RenderableType]:
    table, speed = _grid(), comparison.speed
    if speed is not None:
        table.add_row("speed", Text(_verdict(speed), style=f"bold {_COLOURS[speed.verdict]}"))
        table.add_row("", f"A {_rate(speed.a, speed.unit)}, B {_rate(speed.b, speed.unit)}")
        table.add_row("", Text(_rests_on(speed), style="dim"))
    for caveat in comparison.caveats:
        table.add_row("mind", Text(caveat, style="yellow"))
    return [table]


def _verdict(speed: Speed) -> str:
    ratio = speed.ratio
    spread = f"({ratio.low:.2f} to {ratio.high:.2f})"
    if speed.verdict == "unclear":
        return f"unclear: B is {ratio.value:.2f}x as fast {spread}; one run of each cannot tell that from 1"
    return f"{speed.verdict}: B is {ratio.value:.2f}x as fast {spread}"


def _rate(estimate: Estimate, unit: str) -> str:
    return f"{number(estimate.value)} {unit}/s ({number(estimate.low)} to {number(estimate.high)})"


def _rests_on(speed: Speed) -> str:
    within = f"{speed.within.low:.2f} to {speed.within.high:.2f}"
    more = ", and more for what is said below" if speed.is_disturbed else ""
    return (
        f"one run of each. By up to {BLOCKS} blocks of steps within each it would be {within}; {speed.run_to_run:.0%}"
        f" is added for what two runs of the same program differ by{more}. To claim less: floorit try"
    )


def _ledger(comparison: Comparison) -> RenderableType:
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column(f"where a {comparison.per}'s time went", no_wrap=True)
    for title in ("A", "B", "B less A"):
        table.add_column(title, justify="right", no_wrap=True)
    step = comparison.step
    least = SMALL * max(step.a, step.b)
    shown = [phase for phase in comparison.ledger if max(phase.a, phase.b) >= least]
    for phase in sorted(shown, key=lambda phase: -abs(phase.difference)):
        table.add_row(PHASES[phase.phase], *_cells(phase, least))
    rest = [phase for phase in comparison.ledger if 0 < max(phase.a, phase.b) < least]
    if rest:
        together = [sum(phase.a for phase in rest), sum(phase.b for phase in rest)]
        table.add_row("the rest", *map(seconds, together), _signed(together[1] - together[0]))
    table.add_row("all of it", *map(seconds, (step.a, step.b)), _signed(step.b - step.a), style="bold")
    return table


def _cells(phase: Phase, least: float) -> list[Text]:
    style = "" if abs(phase.difference) < least else "red" if phase.difference > 0 else "green"
    before, after = (Text(seconds(spent) if spent else "none") for spent in (phase.a, phase.b))
    return [before, after, Text(_signed(phase.difference), style=style)]


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}" if value else "0"


def _findings(findings: list[Found]) -> list[RenderableType]:
    table = _grid()
    for found in findings:
        if found.a is None:
            table.add_row("new in B", Text(f"{found.code}: {found.title}{_share(found.share_b)}{_first(found.b)}"))
    for found in findings:
        if found.b is None:
            table.add_row("gone in B", Text(f"{found.code}: {found.title}{_share(found.share_a)}{_first(found.a)}"))
    for found in findings:
        if found.a is not None and found.b is not None:
            shares = f" ({found.share_a:.0%}, then {found.share_b:.0%} of the step)" if _both(found) else ""
            table.add_row("in both", Text(f"{found.code}{shares}{_moved(found)}"))
    return [table, Text()] if findings else []


def _both(found: Found) -> bool:
    return found.share_a is not None and found.share_b is not None


def _share(share: float | None) -> str:
    return f" ({share:.0%} of the step)" if share is not None else ""


def _first(place: int | None) -> str:
    return "; the verdict" if place == 0 else ""


def _moved(found: Found) -> str:
    if (found.a == 0) == (found.b == 0):
        return _first(found.a)
    return "; now the verdict" if found.b == 0 else "; was the verdict"


def _changes(title: str, changes: list[Change]) -> list[RenderableType]:
    if not changes:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column(title, overflow="fold")
    for side in ("A", "B"):
        table.add_column(side, overflow="fold")
    for change in changes:
        name = _NAMES.get(change.name, change.name)
        absent = _ABSENT.get(title, "not known")
        words = (absent if value is None else _word(change.name, value) for value in (change.a, change.b))
        table.add_row(name, *map(Text, words))
    return [table, Text()]


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
