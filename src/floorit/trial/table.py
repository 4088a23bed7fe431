"""What is said of a try, as text for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.controls import PHASES
from floorit.fixes import asked
from floorit.report.words import relative, several, size
from floorit.stats import Estimate, duration, seconds
from floorit.trial.attempt import NAME, Result
from floorit.trial.memory import CLAIMED
from floorit.trial.verdict import Fixed, Outcome

_COLOURS = {"faster": "green", "changed results": "red", "failed": "red", "unclear": "yellow"}
_RESULTS = {
    "same": "the same",
    "rounding": "same up to rounding",
    "alike": "same course",
    "changed": "changed",
    "broken": "broken",
    "unverified": "unverified",
}
_WORTH_SAYING = 1.0  # seconds by which the start must differ


def render(result: Result) -> RenderableType:
    """The verdicts first, then what each rests on."""
    head = Text(f"floorit: {headline(result)}", style="bold")
    parts: list[RenderableType] = [Text(), head, Text(), _table(result.outcomes), Text()]
    for outcome in result.outcomes:
        parts += [*_because(outcome), Text()]
    parts.append(Text(f"written to {relative(result.folder)}/{NAME}", style="dim"))
    return Group(*parts)


def headline(result: Result) -> str:
    """What was done."""
    many = several(len(result.outcomes), "change")
    text = f"{many} tried in {result.trials} runs of {result.steps} steady steps, {duration(result.seconds)}"
    if result.interrupted:
        text += "; interrupted: the same command with --out goes on with it"
    return text


def _table(outcomes: list[Outcome]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("change", "verdict", "times as fast", "predicted", "memory", "results"):
        table.add_column(title, overflow="fold")
    for outcome in outcomes:
        table.add_row(
            Text(outcome.name),
            Text(outcome.verdict, style=colour(outcome)),
            measured(outcome.speedup),
            f"{outcome.predicted.value:.2f}" if outcome.predicted is not None else "",
            memory(outcome),
            results(outcome),
        )
    return table


def colour(outcome: Outcome) -> str:
    """Of its verdict."""
    return _COLOURS.get(outcome.verdict, "")


def results(outcome: Outcome) -> str:
    """What became of them, in a word or two."""
    return _RESULTS[outcome.parity.status]


def memory(outcome: Outcome) -> str:
    """The peak with the change, and by how much it differs where that may be said."""
    if outcome.memory.both is None or outcome.memory.saved is None:
        return ""
    peak, saved = size(outcome.memory.both[1]), outcome.memory.saved
    return f"{peak} ({-saved:+.0%})" if abs(saved) >= CLAIMED else peak


def measured(speedup: Estimate | None) -> str:
    """A gain with its interval."""
    return f"{speedup.value:.2f} ({speedup.low:.2f} to {speedup.high:.2f})" if speedup is not None else ""


def reasons(outcome: Outcome) -> list[str]:
    """Why that is said of an arm."""
    lines = [f"{outcome.verdict}: {outcome.reason}"]
    if outcome.pairs:
        a, b = (sum(times) / len(outcome.pairs) for times in zip(*((p.a, p.b) for p in outcome.pairs), strict=True))
        steps = min(pair.steps for pair in outcome.pairs)
        pairs = several(len(outcome.pairs), "pair")
        lines.append(f"a step took {seconds(a)} as it is, {seconds(b)} with it ({pairs} over {steps} steps and more)")
    lines += outcome.disturbed
    if outcome.parity.reason != outcome.reason:
        lines.append(f"results: {outcome.parity.reason}")
    lines += _skipped(outcome)
    lines += [f"{o.code}: {o.state}" + (f", {o.reason}" if o.reason else "") for o in outcome.overrides]
    seldom = [(PHASES[o.code], o.value) for o in outcome.overrides if o.code in PHASES and o.turned]
    lines += [f"{phase} is counted as 1/{n} of what it takes as it is, however often it came" for phase, n in seldom]
    if outcome.not_predicted is not None:
        lines.append(f"no prediction: {outcome.not_predicted}")
    return lines + _startup(outcome)


def _skipped(outcome: Outcome) -> list[str]:
    """Steps that a GradScaler left out, where there were any: results are then of fewer."""
    a, b = outcome.skipped.a, outcome.skipped.b
    if not a and not b:
        return []
    as_it_is = f"{a:.1%} as it is" if a is not None else "as it is it has no GradScaler"
    with_it = f"{b:.1%} with it" if b is not None else "with it there is no GradScaler"
    return [f"steps that the GradScaler skipped: {as_it_is}, {with_it}"]


def _because(outcome: Outcome) -> list[RenderableType]:
    body = [Text(outcome.name, style="bold"), *(Text(f"  {line}") for line in reasons(outcome))]
    if outcome.failure is not None:
        body += [Text(f"  | {line}", style="dim") for line in outcome.failure.last]
        body.append(Text(f"  all it said: {relative(outcome.failure.said or '')}"))
    return list(body)


def _startup(outcome: Outcome) -> list[str]:
    startup = outcome.startup
    if startup.a is None or startup.b_first is None or startup.b_first - startup.a < _WORTH_SAYING:
        return []
    pays = f"; that pays after {startup.pays_after:,} steps" if startup.pays_after is not None else ""
    return [
        f"until steps are steady it took {seconds(startup.b_first)} the first time, {seconds(startup.a)} as it is{pays}"
    ]


def written(fixes: list[Fixed]) -> list[str]:
    """As they are typed."""
    return asked.written({fix.code: fix.value for fix in fixes})
