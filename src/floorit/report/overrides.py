"""Fixes that were applied from outside: which are in force, and what the program itself asks for."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from floorit.analyse.overrides import Override
from floorit.fixes.values import spelled

_STYLES = {"in force": "green", "not met": "yellow", "failed": "red"}
_MEANING = {"not met": "not met: the program never did what it would change"}


def render(overrides: list[Override]) -> list[RenderableType]:
    """One line each."""
    return [
        Text.assemble(
            f"fix {override.code}={spelled(override.value)} ",
            (_MEANING.get(override.state, override.state), _STYLES[override.state]),
            f" ({override.reason})" if override.reason else "",
            _opposite(override),
        )
        for override in overrides
    ]


def _opposite(override: Override) -> str:
    if not override.opposed:
        return ""
    at = override.asked_at
    place = f" at {at.file}:{at.line}" if at is not None else ""
    asks = "leaves it open" if override.asked is None else f"asks for {spelled(override.asked)}"
    return f"; the program {asks}{place}"
