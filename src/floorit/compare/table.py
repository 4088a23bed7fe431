"""Two runs side by side, as text for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit.compare import words
from floorit.compare.comparison import Change, Comparison, Found, Phase
from floorit.report.words import PHASES, relative
from floorit.stats import seconds

_COLOURS = {"faster": "green", "slower": "red", "unclear": "yellow"}


def render(comparison: Comparison) -> RenderableType:
    """The speed first, then where it comes from, then what was not the same."""
    parts: list[RenderableType] = [Text(), _heads(comparison), Text(), *_speed(comparison), Text()]
    parts += [_ledger(comparison), Text(), *_findings(comparison.findings)]
    for title, changes in words.differences(comparison):
        parts += _changes(title, changes)
    same = words.alike(comparison)
    if same:
        parts.append(Text(f"the same in both: {', '.join(same)}", style="dim"))
    return Group(*parts)


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
        table.add_row("speed", Text(words.verdict(speed), style=f"bold {_COLOURS[speed.verdict]}"))
        table.add_row("", f"A {words.rate(speed.a, speed.unit)}, B {words.rate(speed.b, speed.unit)}")
        table.add_row("", Text(words.rests_on(speed), style="dim"))
    for caveat in comparison.caveats:
        table.add_row("mind", Text(caveat, style="yellow"))
    return [table]


def _ledger(comparison: Comparison) -> RenderableType:
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column(f"where a {comparison.per}'s time went", no_wrap=True)
    for title in ("A", "B", "B less A"):
        table.add_column(title, justify="right", no_wrap=True)
    step = comparison.step
    shown, rest = words.by_difference(comparison)
    for phase in shown:
        table.add_row(PHASES[phase.phase], *_cells(phase, words.least(comparison)))
    if rest is not None:
        table.add_row(rest.phase, *map(seconds, (rest.a, rest.b)), words.signed(rest.difference))
    table.add_row("all of it", *map(seconds, (step.a, step.b)), words.signed(step.b - step.a), style="bold")
    return table


def _cells(phase: Phase, least: float) -> list[Text]:
    style = "" if abs(phase.difference) < least else "red" if phase.difference > 0 else "green"
    before, after = (Text(seconds(spent) if spent else "none") for spent in (phase.a, phase.b))
    return [before, after, Text(words.signed(phase.difference), style=style)]


def _findings(findings: list[Found]) -> list[RenderableType]:
    table = _grid()
    for where, said in words.findings(findings):
        table.add_row(where, Text(said))
    return [table, Text()] if findings else []


def _changes(title: str, changes: list[Change]) -> list[RenderableType]:
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    for head in (title, "A", "B"):
        table.add_column(head, overflow="fold")
    for change in changes:
        table.add_row(*map(Text, words.cells(title, change)))
    return [table, Text()]
