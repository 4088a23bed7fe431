"""Lines that took time and that reading the source has something to say about, as a person reads it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.habits import Habit
from floorit.stats import seconds

_MOST = 5


def render(habits: list[Habit]) -> list[RenderableType]:
    """The costliest, each with what to write instead."""
    if not habits:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("what the source says of lines that took time", overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    for habit in habits[:_MOST]:
        said = Text.assemble(f"{habit.file}:{habit.line}  ", (habit.code, "bold"), f"  {habit.message}")
        said.append(f"\n  instead: {habit.instead}", "dim")
        table.add_row(said, _took(habit))
    return [table, Text()]


def _took(habit: Habit) -> str:
    if habit.seconds is None:
        return f"{habit.share:.0%} of making batches"
    return f"{seconds(habit.seconds)}, {habit.share:.0%} of the step"
