"""What was found, as a person reads it: the verdict, what to do about it, what would not help."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.diagnose.settings import word
from floorit.fixes.fix import CLAIMED, NO_LOADER
from floorit.report.words import place, speedup
from floorit.stats import Estimate

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
    fixes = {fix.code: (fix, fix.speedup) for finding in findings for fix in finding.fixes}
    ranked = [
        ((fix.risk == "training", -gain.value), _set(fix), _promise(fix, gain))
        for fix, gain in fixes.values()
        if gain is not None and gain.value > CLAIMED
    ]
    ranked += [
        (
            (False, -f.rewrite.halved.value),
            f"rewrite {f.rewrite.where.function} ({place(f.rewrite.where)})",
            _halved(f.rewrite),
        )
        for f in findings[:1]
        if f.rewrite is not None
    ]
    said = [Text.assemble((what, "bold"), f"  {promise}") for _, what, promise in sorted(ranked)[:MOST_ADVICE]]
    by_reason: dict[str, list[str]] = {}
    for no in findings[0].not_advised:
        if no.reason == NO_LOADER:
            continue  # who has none knows
        by_reason.setdefault(no.reason, []).append(no.code)
    vain = [Text(f"{', '.join(codes)}: {reason}") for reason, codes in by_reason.items()][:MOST_ADVICE]
    if not said and findings[0].bound is not None and findings[0].code != "out-of-memory":
        said = [Text(f"nothing whose gain can be predicted here would make it {CLAIMED - 1:.0%} faster")]
    return [*_headed("what to do", said), *_headed("would not help", vain)]


def _headed(head: str, lines: list[Text]) -> list[tuple[str, Text]]:
    return [(head if i == 0 else "", line) for i, line in enumerate(lines)]


def _set(fix: FixAdvice) -> str:
    return fix.code if fix.value is None else f"{fix.code}={word(fix.value)}"


def _promise(fix: FixAdvice, gain: Estimate) -> str:
    risk = f"{_RISKS[fix.risk]} {fix.proviso}".rstrip()
    return f"{speedup(gain)} ({risk}; {_EFFORTS[fix.effort]}): {fix.summary}"


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
