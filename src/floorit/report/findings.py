"""What was found, as a person reads it: the verdict, what to do about it, what would not help."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.diagnose.settings import word
from floorit.fixes.fix import CLAIMED, NO_LOADER
from floorit.report.words import place, speedup

MOST_ADVICE = 3  # fixes, and fixes that would not help
_RISKS = {
    "exact": "same results",
    "rounding": "other rounding",
    "order": "other order of data",
    "training": "changes training",
}
_EFFORTS = {"a flag": "a setting", "a few lines": "a few lines", "a rewrite": "a rewrite"}


def render(findings: list[Finding]) -> list[RenderableType]:
    """The verdict in full, the others in a line each."""
    if not findings:
        return []
    first = findings[0]
    table = Table.grid(padding=(0, 2, 0, 0))  # so that what wraps stays under what it belongs to
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("verdict", Text(f"{first.code}: {first.title}", style="bold"))
    said = [_weight(first), *first.evidence, *(f"at {place(line)}  {line.function}" for line in first.where[:3])]
    for line in filter(None, said):
        table.add_row("", Text(line))
    for what, says in _to_do(findings):
        table.add_row(what, says)
    for finding in findings[1:]:
        at = f"at {place(finding.where[0])}" if finding.where else ""
        weight = _weight(finding) or finding.title
        table.add_row("also", Text(f"{finding.code}: {', '.join(filter(None, [weight, at]))}"))
    return [table, Text()]


def _to_do(findings: list[Finding]) -> list[tuple[str, Text]]:
    """The fixes that promise most, whichever finding they answer, and what people would try in vain."""
    said = [Text.assemble((what, "bold"), f"  {promise}") for what, promise in _chosen(findings)]
    by_reason: dict[str, list[str]] = {}
    for no in findings[0].not_advised:
        if no.reason == NO_LOADER:
            continue  # who has none knows
        by_reason.setdefault(no.reason, []).append(no.code)
    vain = [Text(f"{', '.join(codes)}: {reason}") for reason, codes in by_reason.items()][:MOST_ADVICE]
    if not said and findings[0].bound is not None and findings[0].code != "out-of-memory":
        said = [Text(f"nothing whose gain can be predicted here would make it {CLAIMED - 1:.0%} faster")]
    return [*_headed("what to do", said), *_headed("would not help", vain)]


def _chosen(findings: list[Finding]) -> list[tuple[str, str]]:
    """What to do and what it promises: an answer to the verdict is always among them, to a switch left on the first."""
    first = findings[0]
    answers = {fix.code for fix in first.fixes}
    is_switch = first.code == "debug-left-on"
    fixes = {fix.code: fix for finding in findings for fix in finding.fixes}
    options = [
        (
            (not (is_switch and fix.code in answers), fix.risk == "training", -fix.speedup.value),
            fix.code in answers,
            _set(fix),
            _promise(fix),
        )
        for fix in fixes.values()
        if fix.speedup is not None and fix.speedup.value > CLAIMED
    ]
    if first.rewrite is not None:
        key = (True, False, -first.rewrite.halved.value)
        what = f"rewrite {first.rewrite.where.function} ({place(first.rewrite.where)})"
        options.append((key, True, what, _halved(first.rewrite)))
    options.sort()
    chosen = options[:MOST_ADVICE]
    if not any(answers_it for _, answers_it, *_ in chosen):
        chosen[MOST_ADVICE - 1 :] = [option for option in options if option[1]][:1] or chosen[MOST_ADVICE - 1 :]
    return [(what, promise) for _, _, what, promise in chosen]


def _headed(head: str, lines: list[Text]) -> list[tuple[str, Text]]:
    return [(head if i == 0 else "", line) for i, line in enumerate(lines)]


def _set(fix: FixAdvice) -> str:
    return fix.code if fix.value is None else f"{fix.code}={word(fix.value)}"


def _promise(fix: FixAdvice) -> str:
    assert fix.speedup is not None
    risk = f"{_RISKS[fix.risk]} {fix.proviso}".rstrip()
    return f"{speedup(fix.speedup)} ({risk}; {_EFFORTS[fix.effort]}): {fix.summary}"


def _halved(rewrite: Rewrite) -> str:
    return f"{speedup(rewrite.halved)} if it took half its time, {speedup(rewrite.gone)} if none"


def _weight(finding: Finding) -> str:
    """How much of the step it is, and the most that could be gained."""
    if finding.share is None:
        return ""
    share = f"{finding.share:.0%} of the step"
    if finding.bound is None or finding.code in ("compute-bound", "healthy"):
        return ""  # the evidence says it, and nothing is to be gained
    return f"{share}; without it at most {finding.bound:.2f}x faster"
