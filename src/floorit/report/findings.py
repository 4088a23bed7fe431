"""What was found, as a person reads it: the verdict, what to do about it, what would not help."""

from __future__ import annotations

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.diagnose.settings import word
from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.fixes.fix import CLAIMED, NO_LOADER
from floorit.report.memory import change
from floorit.report.words import place, speedup
from floorit.stats import Estimate

MORE = 1.05  # times what a cost's share says: a bound that is higher counts more than the share does
NOTHING = f"nothing whose gain can be predicted here would make it {CLAIMED - 1:.0%} faster"
MOST_ADVICE = 3  # fixes, and fixes that would not help
RISKS = {
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
    said = [weight(first), *first.evidence, *(f"at {place(line)}  {line.function}" for line in first.where[:3])]
    for line in filter(None, said):
        table.add_row("", Text(line))
    for what, says in _to_do(findings):
        table.add_row(what, says)
    for finding in findings[1:]:
        at = f"at {place(finding.where[0])}" if finding.where else ""
        said = [weight(finding) or finding.title, at]
        table.add_row("also", Text(f"{finding.code}: {', '.join(filter(None, said))}"))
    return [table, Text()]


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do: a fix, or a rewrite where `fix` is None."""

    what: str
    promise: str
    speedup: Estimate  # of a rewrite, if what it replaces took half its time
    fix: FixAdvice | None = None

    @property
    def setting(self) -> str | None:
        """What `--fix` is to be given; None where it cannot be applied from outside."""
        if self.fix is None or self.fix.by_hand:
            return None
        try:
            asked.parse([self.what])
        except UsageError:
            return None
        return self.what


def _to_do(findings: list[Finding]) -> list[tuple[str, Text]]:
    """The fixes that promise most, whichever finding they answer, and what people would try in vain."""
    said = [Text.assemble((advice.what, "bold"), f"  {advice.promise}") for advice in chosen(findings)]
    vain = [Text(f"{', '.join(codes)}: {reason}") for reason, codes in in_vain(findings)][:MOST_ADVICE]
    if not said and promises_nothing(findings):
        said = [Text(NOTHING)]
    return [*_headed("what to do", said), *_headed("would not help", vain)]


def promises_nothing(findings: list[Finding]) -> bool:
    """Whether it is to be said that nothing would help, where no advice is given."""
    return findings[0].bound is not None and findings[0].code != "out-of-memory"


def in_vain(findings: list[Finding]) -> list[tuple[str, list[str]]]:
    """Popular changes that would not help, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for no in findings[0].not_advised:
        if no.reason != NO_LOADER:  # who has none knows
            by_reason.setdefault(no.reason, []).append(no.code)
    return list(by_reason.items())


def chosen(findings: list[Finding], most: int = MOST_ADVICE) -> list[Advice]:
    """What promises most: an answer to the verdict is always among them, to a switch left on the first."""
    first = findings[0]
    answers = {fix.code for fix in first.fixes}
    is_switch = first.code == "debug-left-on"
    fixes = {fix.code: fix for finding in findings for fix in finding.fixes}
    options = [
        (
            (not (is_switch and fix.code in answers), fix.risk == "training", -fix.speedup.value),
            fix.code in answers,
            Advice(what=set_to(fix), promise=promise(fix), speedup=fix.speedup, fix=fix),
        )
        for fix in fixes.values()
        if fix.speedup is not None and fix.speedup.value > CLAIMED
    ]
    if first.rewrite is not None:
        halved = first.rewrite.halved
        what = f"rewrite {first.rewrite.where.function} ({place(first.rewrite.where)})"
        advice = Advice(what=what, promise=_halved(first.rewrite), speedup=halved)
        options.append(((True, False, -halved.value), True, advice))
    options.sort(key=lambda option: (*option[:2], option[2].what))
    best = options[:most]
    if not any(answers_it for _, answers_it, _ in best):
        best[most - 1 :] = [option for option in options if option[1]][:1] or best[most - 1 :]
    return [advice for _, _, advice in best]


def _headed(head: str, lines: list[Text]) -> list[tuple[str, Text]]:
    return [(head if i == 0 else "", line) for i, line in enumerate(lines)]


def set_to(fix: FixAdvice) -> str:
    """A fix with its value, as `--fix` takes it."""
    return fix.code if fix.value is None else f"{fix.code}={word(fix.value)}"


def promise(fix: FixAdvice) -> str:
    """What a fix should gain, what it does to results, and what it takes."""
    gain = f"{speedup(fix.speedup)} " if fix.speedup is not None else ""
    risk = f"{RISKS[fix.risk]} {fix.proviso}".rstrip()
    effort = f"{_EFFORTS[fix.effort]}, by hand" if fix.by_hand else _EFFORTS[fix.effort]
    memory = f"; {change(fix.memory)} of memory at the peak" if fix.memory else ""
    return f"{gain}({risk}; {effort}{memory}): {fix.summary}"


def _halved(rewrite: Rewrite) -> str:
    return f"{speedup(rewrite.halved)} if it took half its time, {speedup(rewrite.gone)} if none"


def weight(finding: Finding) -> str:
    """How much of the step it is, and the most that could be gained."""
    if finding.share is None:
        return ""
    share = f"{finding.share:.0%} of the step"
    if finding.bound is None or finding.code in ("compute-bound", "healthy"):
        return ""  # the evidence says it, and nothing is to be gained
    more = " and what goes with it" if finding.bound * (1 - finding.share) > MORE else ""
    return f"{share}; without it{more} at most {finding.bound:.2f}x faster"
