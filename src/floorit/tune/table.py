"""What is said of a search, as text for a terminal."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit import recipe
from floorit.report.words import number, relative, several, size
from floorit.stats import duration
from floorit.trial import table as trials
from floorit.trial.statistics import CLAIMED
from floorit.trial.verdict import Fixed, Outcome
from floorit.tune import judge
from floorit.tune.result import NAME, Result, Stage
from floorit.tune.sizes import Size, Sizes
from floorit.tune.told import PATCH, Told

NOTHING_LESS = "nothing was proven to take less memory at 95% of the speed"
_JOULES = 3.6e6  # of a kilowatt-hour
_BUDGETS = {"gpu": "GPU memory", "host": "host memory", "shared": "/dev/shm"}


def render(result: Result) -> RenderableType:
    """What came of it, then all that was tried, and what to do next."""
    parts: list[RenderableType] = [Text(), Text(f"floorit: {headline(result)}", style="bold"), Text()]
    if any(stage.outcomes for stage in result.stages):
        parts += [_table(result), Text()]
    for stage in result.stages:
        if stage.sizes is not None:
            parts += [_sizes(stage.sizes), Text(taken(stage.sizes)), Text()]
    parts += [Text(line) for line in closing(result)]
    parts += [Text(), *(Text(line) for line in _next(result))]
    return Group(*parts)


def closing(result: Result) -> list[str]:
    """What all of it together is, what is left, and why it ended."""
    return [*_proof(result), *_job(result), *_left(result), f"it ended: {result.stopped}", *result.advice]


def headline(result: Result) -> str:
    """What came of it."""
    first = result.stages[0] if result.stages else None
    if result.does_not_run and first is not None and first.sizes is not None:
        fit = f"batches of {first.sizes.chosen} fit" if first.sizes.chosen is not None else "no size of batches ran"
        return f"it runs out of memory as it is; {fit}, of {several(len(first.sizes.seen), 'size')} that were run"
    tried = sum(len(stage.outcomes) for stage in result.stages)
    spent = f"{several(tried, 'change')} tried in {duration(result.seconds)}"
    if result.proof is None and result.stack:
        return f"{spent}; kept so far, each proven on top of the one before: {stacked(result.stack)}"
    if result.proof is None or result.proof.speedup is None:
        return f"{spent}; {NOTHING_LESS if result.goal == 'memory' else 'nothing was proven faster'}"
    if not result.is_proven:
        return f"{spent}; together, what was kept is {judge.word(result.goal, result.proof, speed=1.0)}"
    fast = f"{trials.measured(result.proof.speedup)} times as fast"
    if result.goal == "memory" and result.proof.memory.both is not None:
        before, after = result.proof.memory.both
        fast = f"{size(after)} of memory instead of {size(before)}; {fast}"
    return f"{fast} with {stacked(result.stack)}; {spent}"


def lead(result: Result) -> tuple[str, str] | None:
    """What was proven of memory: a number, and words for it."""
    peaks = result.proof.memory.both if result.proof is not None and result.is_proven else None
    return None if peaks is None else (size(peaks[1]), f"of memory instead of {size(peaks[0])}")


def _table(result: Result) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("change", "on top of", "predicted", "times as fast", "memory", "results", "verdict"):
        table.add_column(title, overflow="fold")
    for stage in result.stages:
        for outcome in stage.outcomes:
            said = verdict(result, stage, outcome)
            table.add_row(*_row(outcome, stacked(stage.on)), Text(said, style=trials.colour(outcome)))
    if result.proof is not None and len(result.stack) > 1:
        said = judge.word(result.goal, result.proof, speed=1.0)
        table.add_row(*_row(result.proof, ""), Text(said, style=trials.colour(result.proof)))
    return table


def _sizes(found: Sizes) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("batches of", "samples/s", *map(_BUDGETS.__getitem__, _budgets(found)), ""):
        table.add_column(title, justify="right" if title else "left")
    for one in sorted(found.seen, key=lambda one: one.size):
        table.add_row(*_size(one, found, ""))
    for label, seen in found.beside.items():
        for one in seen:
            table.add_row(*_size(one, found, f"with {label}"))
    table.add_row("at most", "", *(size(found.limits.get(budget)) for budget in _budgets(found)), "")
    return table


def _budgets(found: Sizes) -> list[str]:
    seen = [one for some in (found.seen, *found.beside.values()) for one in some]
    return [budget for budget in _BUDGETS if any(budget in one.peaks for one in seen)]


def _size(one: Size, found: Sizes, label: str) -> list[str]:
    rate = number(one.rate) if one.rate is not None and one.state == "ran" else ""
    used = [size(one.peaks[budget]) if budget in one.peaks else "" for budget in _budgets(found)]
    marks = ["its own"] * (one.size == found.own) + ["chosen"] * (one.size == found.chosen and not label)
    marks += [label] * bool(label) + [f"{one.state}: {one.reason}"] * (one.state != "ran")
    return [str(one.size), rate, *used, ", ".join(marks)]


def taken(found: Sizes) -> str:
    """Which size is tried, and why no other."""
    lead = f"batches of {found.chosen}" if found.chosen is not None else "no other size of batches"
    ran = [one for one in found.seen if one.state == "ran"]
    unseen = "; no evaluation was seen, so its batches are not in these peaks" if ran and not ran[-1].evaluated else ""
    return f"{lead}: {found.why}{unseen}"


def verdict(result: Result, stage: Stage, outcome: Outcome) -> str:
    """In the words of a search."""
    word = judge.word(result.goal, outcome, speed=stage.speed)
    if outcome.name == stage.kept:
        return f"{word}, kept"
    return "no gain so far, left" if result.goal != "memory" and _is_left(outcome) else word


def _is_left(outcome: Outcome) -> bool:
    """Whether no more time was spent on it: its interval says nothing then."""
    return outcome.verdict == "unclear" and outcome.speedup is not None and outcome.speedup.value < CLAIMED


def _row(outcome: Outcome, on: str) -> tuple[str, ...]:
    gain = outcome.speedup
    predicted = f"{outcome.predicted.value:.2f}" if outcome.predicted is not None else ""
    measured = trials.measured(gain)
    if gain is not None and _is_left(outcome):
        measured = f"{gain.value:.2f} in {several(gain.n, 'pair')}"
    return outcome.name, on, predicted, measured, trials.memory(outcome), trials.results(outcome)


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
    job = result.job
    lines = [f"the whole training: {duration(job.before)} as it is, about {duration(job.after)} with it"]
    if any(fix.code == "batch" for fix in result.stack):
        lines[0] += ", for as many samples"
    if job.joules_before is not None and job.joules_after is not None:
        before, after = (joules / _JOULES for joules in (job.joules_before, job.joules_after))
        lines.append(f"energy of the GPU: about {number(before)} kWh as it is, {number(after)} kWh with it")
    return lines


def _left(result: Result) -> list[str]:
    left = result.left
    if left is None or left.gap is None:
        return []
    when = "as it is" if not result.stack else "with all of it" if left.with_all else "before the last change"
    if left.only_data:
        limits = f"; what limits it: {left.finding}" if left.finding is not None else ""
        return [*_closed(result), f"{when}, without waiting for data a step would be {left.gap:.2f}x as fast{limits}"]
    holds = f"; what holds it there: {left.finding}" if left.finding is not None else ""
    return [*_closed(result), f"a step takes {left.gap:.2f} times its floor {when}{holds}"]


def _closed(result: Result) -> list[str]:
    """How far it came, where there was a way to go."""
    closed = result.closed
    if closed is None or result.left is None:
        return []
    gone = f"{closed.value:.0%} ({closed.low:.0%} to {closed.high:.0%})"
    if result.left.only_data:
        return [f"of what waiting for data took, {gone} is gone"]
    return [f"of the way from {result.left.gap_before:.2f} times its floor down to it, {gone} is gone"]


def commands(result: Result) -> list[str]:
    """To train with what was proven: unedited, or with the patch where there is one."""
    if not result.is_proven:
        return []
    assert result.proof is not None
    train = ["floorit", "run", "--with", relative(f"{result.folder}/{recipe.NAME}"), *result.proof.command]
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
