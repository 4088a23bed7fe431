"""A try as a page: every change with its interval, beside what was predicted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from floorit.report.page import NAME, document, save
from floorit.stats import Estimate
from floorit.trial import statistics, table
from floorit.trial.attempt import Result
from floorit.trial.verdict import Outcome


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One change as it is shown."""

    name: str
    on: str = ""  # what it was tried on top of
    verdict: str
    speedup: Estimate | None
    predicted: Estimate | None
    ratios: list[float]  # times as fast, in each pair
    claimed: float | None  # by how much it must be faster for that to be said; None: there was no A against A
    results: str
    memory: str = ""  # its peak
    reasons: list[str]


def write(result: Result, folder: Path) -> Path:
    """Draw the page of a try in its folder."""
    faster = [outcome for outcome in result.outcomes if outcome.verdict == "faster" and outcome.speedup is not None]
    best = max(faster, key=lambda outcome: outcome.speedup.value if outcome.speedup else 0.0, default=None)
    again = [shlex.join(["floorit", "run", *_options(best), "--", *best.command])] if best is not None else []
    rows = [row(outcome) for outcome in result.outcomes]
    first = [f"set it in the file first: {entry}" for entry in best.entries] if best is not None else []
    values = {"kind": "try", "headline": table.headline(result), "closing": first, "commands": again}
    return draw(rows, row(best) if best is not None else None, result.command, folder, values)


def row(outcome: Outcome, on: str = "", verdict: str | None = None) -> Row:
    """What is shown of a change."""
    return Row(
        name=outcome.name,
        on=on,
        verdict=verdict or outcome.verdict,
        speedup=outcome.speedup,
        predicted=outcome.predicted,
        ratios=[pair.a / pair.b for pair in outcome.pairs],
        claimed=max(statistics.CLAIMED - 1, outcome.noise) if outcome.noise is not None else None,
        results=table.results(outcome),
        memory=table.memory(outcome),
        reasons=table.reasons(outcome),
    )


def draw(rows: list[Row], best: Row | None, command: Sequence[str], folder: Path, values: dict[str, Any]) -> Path:
    """Write a page of changes."""
    usual = {"lead": None, "nothing": "nothing was proven faster"}
    values = {**usual, **values, "rows": rows, "best": best, "command": shlex.join(command), "folder": str(folder)}
    return save(document.document("changes.html", values, {"changes": rows}), folder / NAME)


def _options(outcome: Outcome) -> list[str]:
    """How a run is told to have the change."""
    return [word for fix in outcome.fixes for word in ("--fix", *table.written([fix]))]
