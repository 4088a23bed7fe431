"""The program's own names as a table."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.named import Named
from floorit.language.drawn import Names
from floorit.report.words import PHASES
from floorit.stats import seconds

MOST = 12  # that are shown
SMALL = 0.02  # of a name's time: a part of it in another phase that is less is not shown


def inside(named: Named) -> str:
    """What its time is part of."""
    return PHASES[named.phase] if named.phase is not None else f"{named.by}, beside the step"


def calls(named: Named) -> str:
    """A step; nothing where it only goes on in another phase."""
    return f"{named.calls:.3g}" if named.calls else ""


def large(spans: list[Named]) -> list[Named]:
    """Without parts of a name that are next to nothing."""
    whole: dict[str, float] = {}
    for named in spans:
        whole[named.name] = whole.get(named.name, 0.0) + named.seconds
    return [named for named in spans if named.seconds >= SMALL * whole[named.name]]


def render(spans: list[Named]) -> list[RenderableType]:
    """What the program has named, the largest first."""
    spans = large(spans)
    if not spans:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("named by the program", no_wrap=True)
    for column in ("a step", "share", "calls"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("inside of", overflow="fold")
    table.add_column("first at", overflow="fold")
    for named in spans[:MOST]:
        share = f"{named.share:.1%}" if named.share is not None else ""
        at = Text(f"{named.file}:{named.line}" if named.file else "", style="dim")
        table.add_row(Names(named.name), seconds(named.seconds), share, calls(named), inside(named), at)
    left = len(spans) - MOST
    return [table, *([Text(f"and {left} more, in report.json", style="dim")] if left > 0 else []), Text()]
