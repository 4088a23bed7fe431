"""What was found, as a person reads it: the verdict, what to do about it, what would not help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.ledger import Line
from floorit.declared import Control, Value
from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.diagnose.settings import word
from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.fixes.fix import CLAIMED, NO_LOADER
from floorit.fixes.values import spelled
from floorit.report.memory import change
from floorit.report.words import place, speedup
from floorit.stats import Estimate

MORE = 1.05  # times what a cost's share says: a bound that is higher counts more than the share does
NOTHING = f"nothing whose gain can be predicted here would make it {CLAIMED - 1:.0%} faster"
MOST_ADVICE = 3  # fixes, and fixes that would not help
MOST_CONTROLS = 4  # settings of the program, for one fix
RISKS = {
    "exact": "same results",
    "rounding": "other rounding",
    "order": "other order of data",
    "training": "changes training",
}
_NAMED = 0.02  # of a cost, that a line takes: less is chance
_EFFORTS = {"a flag": "a setting", "a few lines": "a few lines", "a rewrite": "a rewrite"}


Proven: TypeAlias = "Callable[[list[Advice]], list[Text]]"  # how what is advised is proven, in lines


def render(findings: list[Finding], proven: Proven) -> list[RenderableType]:
    """The verdict in full, what to do and how to prove it, the others in a line each."""
    if not findings:
        return []
    first, *others = findings
    table = Table.grid(padding=(0, 2, 0, 0))  # so that what wraps stays under what it belongs to
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("verdict", Text(f"{first.code}: {first.title}", style="bold"))
    said = [weight(first), *first.evidence, *(f"at {place(line)}  {line.function}" for line in first.where[:3])]
    for line in filter(None, said):
        table.add_row("", Text(line))
    for what, says in _to_do(findings, proven):
        table.add_row(what, says)
    for finding in others:
        at = f"at {place(finding.where[0])}" if finding.where else ""
        table.add_row("also", Text(f"{finding.code}: {', '.join(filter(None, [in_brief(finding), at]))}"))
    return [table, Text()]


def in_brief(finding: Finding) -> str:
    """What it weighs, or what it is."""
    least = (
        f", at least {finding.share:.0%} of the step" if finding.share is not None and finding.share_is_least else ""
    )
    return weight(finding) or f"{finding.title}{least}"


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do: a fix, or a rewrite where `fix` is None."""

    what: str
    promise: str
    speedup: Estimate  # of a rewrite, if what it replaces took half its time
    finding: Finding  # that it is an answer to, the first of them
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

    @property
    def lines(self) -> list[Line]:
        """Of a rewrite: the lines of the function that take time worth a name."""
        rewrite = self.finding.rewrite
        if self.fix is not None or rewrite is None:
            return []
        own = (rewrite.where.file, rewrite.where.function)
        return [line for line in self.finding.where if (line.file, line.function) == own and line.share >= _NAMED]


def _to_do(findings: list[Finding], proven: Proven) -> list[tuple[str, Text]]:
    """The fixes that promise most, whichever finding they answer, and what people would try in vain."""
    best = chosen(findings)
    said = [Text.assemble((advice.what, "bold"), f"  {advice.promise}") for advice in best]
    vain = [Text(f"{', '.join(codes)}: {reason}") for reason, codes in in_vain(findings)][:MOST_ADVICE]
    if not said and promises_nothing(findings):
        said = [Text(NOTHING)]
    return [*_headed("what to do", said), *_headed("prove it", proven(best)), *_headed("would not help", vain)]


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
    """What promises most, the best first: what changes training last, and an answer to the verdict among them."""
    options = sorted([*_fixes(findings), *_rewrites(findings)], key=_rank)
    first, best = findings[0], options[:most]
    answers = [option for option in options if option.finding is first or option.fix in first.fixes]
    if not any(option in answers for option in best):
        best[most - 1 :] = answers[:1] or best[most - 1 :]
    return best


def _fixes(findings: list[Finding]) -> list[Advice]:
    """Each once, as an answer to the first finding that it is advised for."""
    answered = {fix.code: (fix, finding) for finding in reversed(findings) for fix in finding.fixes}
    return [
        Advice(what=set_to(fix), promise=promise(fix), speedup=fix.speedup, finding=finding, fix=fix)
        for fix, finding in answered.values()
        if fix.speedup is not None and fix.speedup.value > CLAIMED
    ]


def _rewrites(findings: list[Finding]) -> list[Advice]:
    """What no switch makes faster."""
    return [
        Advice(
            what=f"rewrite {of.where.function} ({place(of.where)})",
            promise="; ".join([of_rewrite(of), *_otherwise(finding)]),
            speedup=of.halved,
            finding=finding,
        )
        for finding in findings
        if (of := finding.rewrite) is not None
    ]


def _otherwise(finding: Finding) -> list[str]:
    """What else can be done about a function of the program's own than to write it anew."""
    if finding.code != "python-bound" or finding.rewrite is None:
        return []
    rarely = "or call it less often, if its result is not needed in every step"
    return [rarely, *_set_by(finding.rewrite.controls, None)]


def _rank(advice: Advice) -> tuple[bool, float, bool, str]:
    """By what is likely. What takes more than a setting of the program comes after what can be tried without a change
    against the same cost, where that may gain as much."""
    likely = advice.speedup.value
    if advice.setting is None and not (advice.fix is not None and advice.fix.effort == "a flag"):
        others = [other.speedup for other in _fixes([advice.finding]) if other.setting]
        likely = min([likely, *(other.value for other in others if other.high * CLAIMED >= likely)])
    changes_training = advice.fix is not None and advice.fix.risk == "training"
    return changes_training, -likely, advice.setting is None, advice.what


def _headed(head: str, lines: list[Text]) -> list[tuple[str, Text]]:
    return [(head if i == 0 else "", line) for i, line in enumerate(lines)]


def set_to(fix: FixAdvice) -> str:
    """A fix with its value, as `--fix` takes it; who does it by hand needs no word for that."""
    is_plain = fix.value is None or (fix.by_hand and fix.value is True)
    return fix.code if is_plain else f"{fix.code}={spelled(fix.value)}"


def promise(fix: FixAdvice) -> str:
    """What a fix should gain, what it does to results, and what it takes."""
    gain = f"{speedup(fix.speedup)} " if fix.speedup is not None else ""
    risk = f"{RISKS[fix.risk]} {fix.proviso}".rstrip()
    effort = f"{_EFFORTS[fix.effort]}, by hand" if fix.by_hand else _EFFORTS[fix.effort]
    memory = f"; {change(fix.memory)} of memory at the peak" if fix.memory else ""
    return f"{gain}({risk}; {effort}{memory}): {described(fix)}"


def described(fix: FixAdvice) -> str:
    """What a fix changes, where that is done, and what is not to be seen from its gain."""
    said = [fix.summary, *where_to_change(fix)]
    if fix.takes_memory:
        said.append("how much memory it takes is not known")
    if fix.in_program is not None:
        said.append(f"by the program itself, with all that it makes of it: {speedup(fix.in_program)}")
    return "; ".join(said)


def where_to_change(fix: FixAdvice) -> list[str]:
    """The line, what to write there, and the settings of the program that it goes back to."""
    said = [fix.instead] if fix.instead else []
    if fix.controls:
        said += [f"at {place(fix.where)}"] if fix.where is not None else []
        return [*said, *_set_by(fix.controls, fix.value)]
    if fix.where is None:
        return said
    return [*said, f"no setting of the program is seen for it: change it at {place(fix.where)}"]


def _set_by(controls: list[Control], value: Value) -> list[str]:
    said = [_control(control, value) for control in controls[:MOST_CONTROLS]]
    return [f"set by {', '.join(said)}"] if said else []


def _control(control: Control, value: Value) -> str:
    """A setting with its value, the one that it would have by a fix of that value, and where it stands."""
    value_now = [word(control.value)] if control.value is not None else []
    now = ": ".join([*filter(None, [control.name]), *value_now])
    wanted = control.turned(value)
    changed = now if wanted is None else f"{now} -> {word(wanted)}"
    stands = [control.option, f"{control.file}:{control.line}" if control.file else ""]
    return f"`{changed}` ({', '.join(filter(None, stands))})"


def of_rewrite(rewrite: Rewrite) -> str:
    """How much the function takes, and the most that could be gained by writing it anew."""
    said = f"{takes(rewrite)}; if it took no time: {speedup(rewrite.gone)}"
    if rewrite.with_backward is None:
        return said
    return f"{said}; up to {rewrite.with_backward:.2f}x if its part of the backward pass, which is not known, went too"


def takes(rewrite: Rewrite) -> str:
    """Its share of the step, or of what is done beside it."""
    if rewrite.share is None:
        return f"{rewrite.where.share:.0%} of making batches"
    return f"{rewrite.share:.0%} of the step"


def weight(finding: Finding) -> str:
    """How much of the step it is, and the most that could be gained."""
    if finding.share is None or finding.bound is None or not finding.is_removable:
        return ""  # the evidence says it, and nothing is to be gained
    share = f"{finding.share:.0%} of the step" + (f" ({finding.of_which})" if finding.of_which else "")
    most = f"{share}; {_without(finding)} up to {finding.bound:.2f}x as fast"
    back = finding.rewrite.with_backward if finding.rewrite is not None else None
    return most if back is None else f"{most}, without its part of the backward pass up to {back:.2f}x"


def _without(finding: Finding) -> str:
    """What is thought away: where the bound is more than the share says, not only what has the share."""
    if finding.share is None or finding.bound is None or finding.bound * (1 - finding.share) <= MORE:
        return "without it"
    if finding.code == "input-bound":
        return "without it, and without what else batches cost (pauses between epochs, evaluation, cores),"
    if finding.code == "recompute-bound":
        return "without it, and without what checkpointing takes besides,"
    return "without it, and without what waits for it,"
