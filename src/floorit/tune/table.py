"""What is said of a search, as text for a terminal."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit import recipe
from floorit.report.words import duration, relative, several
from floorit.trial import table as trials
from floorit.trial.statistics import CLAIMED
from floorit.trial.verdict import Fixed, Outcome
from floorit.tune.search import NAME, Result
from floorit.tune.told import PATCH, Told


def render(result: Result) -> RenderableType:
    """What came of it, then all that was tried, and what to do next."""
    parts = [Text(), Text(f"floorit: {headline(result)}", style="bold"), Text(), _table(result), Text()]
    parts += [Text(line) for line in closing(result)]
    parts += [Text(), *(Text(line) for line in _next(result))]
    return Group(*parts)


def closing(result: Result) -> list[str]:
    """What all of it together is, what is left, and why it ended."""
    return [*_proof(result), *_job(result), *_left(result), f"it ended: {result.stopped}"]


def headline(result: Result) -> str:
    """What came of it."""
    tried = sum(len(stage.outcomes) for stage in result.stages)
    spent = f"{several(tried, 'change')} tried in {duration(result.seconds)}"
    if result.proof is None and result.stack:
        return f"{spent}; kept so far, each proven on top of the one before: {stacked(result.stack)}"
    if result.proof is None or result.proof.speedup is None:
        return f"{spent}; nothing was proven faster"
    if not result.is_proven:
        return f"{spent}; together, what was kept is {result.proof.verdict}"
    return f"{trials.measured(result.proof.speedup)} times as fast with {stacked(result.stack)}; {spent}"


def _table(result: Result) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("change", "on top of", "predicted", "times as fast", "results", "verdict"):
        table.add_column(title, overflow="fold")
    for stage in result.stages:
        for outcome in stage.outcomes:
            said = verdict(outcome, is_kept=outcome.name == stage.kept)
            table.add_row(*_row(outcome, stacked(stage.on)), Text(said, style=trials.colour(outcome)))
    if result.proof is not None and len(result.stack) > 1:
        table.add_row(*_row(result.proof, ""), Text(result.proof.verdict, style=trials.colour(result.proof)))
    return table


def verdict(outcome: Outcome, *, is_kept: bool) -> str:
    """In the words of a search."""
    if is_kept:
        return f"{outcome.verdict}, kept"
    return "no gain so far, left" if _is_left(outcome) else outcome.verdict


def _is_left(outcome: Outcome) -> bool:
    """Whether no more time was spent on it: its interval says nothing then."""
    return outcome.verdict == "unclear" and outcome.speedup is not None and outcome.speedup.value < CLAIMED


def _row(outcome: Outcome, on: str) -> tuple[str, ...]:
    gain = outcome.speedup
    predicted = f"{outcome.predicted.value:.2f}" if outcome.predicted is not None else ""
    measured = trials.measured(gain)
    if gain is not None and _is_left(outcome):
        measured = f"{gain.value:.2f} in {several(gain.n, 'pair')}"
    return outcome.name, on, predicted, measured, trials.results(outcome)


def _proof(result: Result) -> list[str]:
    if result.proof is None:
        return []
    return [
        f"all together, against the program as it is: {result.proof.reason}",
        f"results: {result.proof.parity.reason}",
    ]


def _job(result: Result) -> list[str]:
    if result.job is None or not result.is_proven:
        return []
    return [f"the whole training: {duration(result.job.before)} as it is, about {duration(result.job.after)} with it"]


def _left(result: Result) -> list[str]:
    left = result.left
    if left is None or left.gap is None:
        return []
    when = "as it is" if not result.stack else "with all of it" if left.with_all else "before the last change"
    holds = f"; what holds it there: {left.finding}" if left.finding is not None else ""
    return [f"a step takes {left.gap:.2f} times its floor {when}{holds}"]


def commands(result: Result) -> list[str]:
    """To train with what was proven: unedited, or with the patch where there is one."""
    if not result.is_proven:
        return []
    train = ["floorit", "run", "--with", relative(f"{result.folder}/{recipe.NAME}"), *result.command]
    has_patch = any(not told.words for told in result.in_source)
    return [shlex.join(train), *[f"git apply {relative(f'{result.folder}/{PATCH}')}"] * has_patch]


def _next(result: Result) -> list[str]:
    lines = []
    if result.is_proven:
        train, *apply = commands(result)
        lines.append(f"train with it, unedited: {train}")
        lines += [f"or change the program: {command}" for command in apply]
        lines += [f"by hand{_place(told)}: {told.words}" for told in result.in_source if told.words]
    if result.interrupted:
        lines.append(f"the same command with --out {relative(result.folder)} goes on with it")
    return [*lines, f"written to {relative(result.folder)}/{NAME}"]


def _place(told: Told) -> str:
    return f", at {relative(told.file)}:{told.line}" if told.file is not None else ""


def stacked(fixes: list[Fixed]) -> str:
    """Fixes on top of each other, as they are typed."""
    return " ".join(trials.written(fixes))
