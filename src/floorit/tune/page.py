"""A search as a page: all that was tried, what was kept, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floorit.trial import page
from floorit.tune import table
from floorit.tune.result import Result


def write(result: Result, folder: Path) -> Path:
    """Draw the page of a search in its folder."""
    rows = [
        page.row(outcome, table.stacked(stage.on), table.verdict(result, stage, outcome))
        for stage in result.stages
        for outcome in stage.outcomes
    ]
    proof = page.row(result.proof) if result.proof is not None else None
    if proof is not None and len(result.stack) > 1:
        rows.append(proof)
    values: dict[str, Any] = {
        "kind": "tune",
        "headline": table.headline(result),
        "closing": [*table.closing(result), *(table.taken(s.sizes) for s in result.stages if s.sizes is not None)],
        "commands": table.commands(result),
    }
    if result.goal == "memory":
        values |= {"nothing": table.NOTHING_LESS, "lead": table.lead(result)}
    return page.draw(rows, proof if result.is_proven else None, result.command, folder, values)
