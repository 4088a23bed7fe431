"""The model's parts as a table."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.parts import Part
from floorit.language.drawn import Names
from floorit.report.words import size
from floorit.stats import prefixed, seconds

MOST_PARTS = 6  # that are named
SOME = 0.05  # of a step: where none has as much, they are not shown


def render(parts: list[Part], how: str | None) -> list[RenderableType]:
    """The parts of the model that cost most, and what the others do."""
    called = sorted((part for part in parts[:-1] if part.share is not None), key=lambda part: -part.seconds)
    if len(called) < 2 or (called[0].share or 0.0) < SOME:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("the model's parts that cost most", no_wrap=True)
    columns = ["forward", "backward"]
    with_recompute = any(part.recompute_seconds for part in parts)
    with_memory = any(part.activation_bytes is not None for part in parts)
    with_flops = any(part.flops for part in parts)
    columns += ["again"] * with_recompute + ["of the step", "parameters"]
    columns += ["keeps"] * with_memory + ["computes"] * with_flops
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    shown = called[: MOST_PARTS if len(called) != MOST_PARTS + 1 else None]
    for part in shown:
        number_of = f" x {part.count}" if part.count > 1 else ""
        name = Names.assemble(part.name, (f"  {part.class_name}{number_of}", "dim"))
        table.add_row(name, *_cost([part], with_recompute), *_size_of(part, with_memory, with_flops))
    others = called[len(shown) :]
    if others:
        table.add_row(Text(f"{len(others)} others", style="dim"), *_cost(others, with_recompute))
    table.add_row(Text("the rest of the passes", style="dim"), *_cost(parts[-1:], with_recompute))
    return [table, Text(f"  by {how}", style="dim"), Text()]


def _cost(parts: list[Part], with_recompute: bool) -> list[str]:
    """Seconds of some parts together, and their share."""
    times = [sum(part.forward_seconds or 0.0 for part in parts), sum(part.backward_seconds or 0.0 for part in parts)]
    times += [sum(part.recompute_seconds or 0.0 for part in parts)] * with_recompute
    return [*map(seconds, times), f"{sum(part.share or 0.0 for part in parts):.1%}"]


def _size_of(part: Part, with_memory: bool, with_flops: bool) -> list[str]:
    kept = size(part.activation_bytes) if part.activation_bytes is not None else ""
    computed = f"{prefixed(part.flops or 0.0)}FLOP"
    return [f"{part.parameters or 0:,}", *[kept] * with_memory, *[computed] * with_flops]
