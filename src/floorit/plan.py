"""What to do about each finding: the fixes that answer it, what they should gain, and which would not help."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import msgspec

from floorit.analyse.habits import Habit
from floorit.analyse.ledger import Function, Line
from floorit.analyse.needs import Range
from floorit.analyse.stepmodel import Change, bound, gain, limit
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Finding, FixAdvice, NotAdvised, Rewrite
from floorit.diagnose.thresholds import NAMED
from floorit.fixes import ALL
from floorit.fixes.fix import CLAIMED, UNANSWERED, Fix, Known
from floorit.stats import Estimate, share

_IGNORED, _DATA = "setting-ignored", "input-bound"
_ADDRESSED = {fix.code: fix.addresses for fix in ALL}
LITTLE = 1.25  # a switch that takes a fifth of the step comes first, whatever else there is
_BEYOND = 1.005  # times a bound: as much is the bound itself, reckoned in another way
# Findings whose code can only be written anew, and the phase that it costs.
_WRITTEN = {"python-bound": "other", "loss-bound": "loss"}


def advise(findings: list[Finding], known: Known) -> list[Finding]:
    """The findings with their fixes; what would not help stands under the first."""
    weighed = [(fix, _weighed(fix, known)) for fix in ALL]
    codes = {finding.code for finding in findings}
    advised = _largest_first([_advised(finding, weighed, known, codes) for finding in findings])
    advised = verdict_first(_causes_first(advised))
    taken = {advice.code for finding in advised for advice in finding.fixes}
    useless = [
        NotAdvised(code=fix.code, reason=said)
        for fix, said in weighed
        if isinstance(said, str) and fix.popular and fix.code not in taken
        if not said.startswith(UNANSWERED)
    ]
    return [msgspec.structs.replace(f, not_advised=useless) for f in advised[:1]] + advised[1:]


def _largest_first(findings: list[Finding]) -> list[Finding]:
    """Costs by their bound, which what is done against them may have raised; all else stays in its place."""
    costs = [f for f in findings if f.bound is not None and f.is_removable and not f.is_switch]
    ordered = iter(sorted(costs, key=lambda f: -(f.bound or 0)))
    return [next(ordered) if any(f is cost for cost in costs) else f for f in findings]


def _causes_first(findings: list[Finding]) -> list[Finding]:
    """A setting that is ignored comes before the cost that it would make less: it is why that is there."""
    ignored = next((f for f in findings if f.code == _IGNORED), None)
    effect = next((f for f in findings if f.bound is not None and f is not ignored), None)
    if ignored is None or effect is None:
        return findings
    answers = [fix.code for fix in ignored.fixes if fix.speedup is not None and fix.speedup.value > NAMED]
    told = [fix.code for fix in effect.fixes if fix.code in answers]
    if not told:
        return findings
    why = f"{', '.join(told)} would be an answer to {effect.code}, which is found too"
    cause = msgspec.structs.replace(ignored, evidence=[*ignored.evidence, why])
    others = [f for f in findings if f is not ignored]
    at = others.index(effect)
    return [*others[:at], cause, *others[at:]]


def verdict_first(findings: list[Finding]) -> list[Finding]:
    """A switch left on is turned off before all else, unless that gains little and less than another cost takes."""
    verdict = next((f for f in findings if not _is_small_switch(f, findings)), None)
    return [verdict, *(f for f in findings if f is not verdict)] if verdict is not None else findings


def _is_small_switch(finding: Finding, findings: list[Finding]) -> bool:
    """Whether all that turning it off could gain is known to be little, and a cost that can be removed may be more."""
    if not finding.is_switch or not finding.fixes:
        return False
    most = max(fix.speedup.high if fix.speedup is not None else math.inf for fix in finding.fixes)
    return most < LITTLE and any(f.bound is not None and f.bound > most and f.is_removable for f in findings)


def sync_gains(points: list[SyncPoint], known: Known) -> list[SyncPoint]:
    """What removing each blocking call would gain by itself."""
    blocked = known.needs.host.get("sync", 0.0)
    if known.unseen or not blocked:
        return points
    return [
        msgspec.structs.replace(p, gain=gain(known.needs, Change(syncs=1 - min(p.seconds / blocked, 1.0))))
        for p in points
    ]


def _weighed(fix: Fix, known: Known) -> Estimate | str:
    """What it gains, or why not; too little to claim is a reason too."""
    said = fix.predict(known)
    if isinstance(said, str) or said.high > CLAIMED:
        return said
    return f"it would make the step at most {said.high - 1:.1%} faster: {limit(known.needs)}"


def _advised(
    finding: Finding, weighed: Iterable[tuple[Fix, Estimate | str]], known: Known, found: Collection[str]
) -> Finding:
    if finding.fixes:
        return finding  # it knows what to do itself
    ignored = {setting.name for setting in known.settings if setting.ignored}
    answers = [
        (_at_most(said, finding.bound) if not (set(fix.addresses) & set(found)) - {finding.code} else said, fix)
        for fix, said in weighed
        if isinstance(said, Estimate)
        and (finding.code in fix.addresses or (finding.code == _IGNORED and fix.setting in ignored))
    ]
    fixes = sorted((_advice(fix, said, finding, known) for said, fix in answers), key=_promised, reverse=True)
    rewrite = _rewrite(finding, known)
    most = _most(finding, fixes, rewrite, known)
    evidence = [*finding.evidence, *_beyond(most, fixes)]
    return msgspec.structs.replace(finding, fixes=fixes, rewrite=rewrite, bound=most, evidence=evidence)


def _beyond(most: float | None, fixes: list[FixAdvice]) -> list[str]:
    """Which fixes may gain more than if the cost vanished, and why."""
    codes = [fix.code for fix in fixes if most and fix.speedup is not None and fix.speedup.high > _BEYOND * most]
    return [f"{', '.join(codes)} may gain more than that, by what else it saves"] if codes else []


def _promised(fix: FixAdvice) -> float:
    return fix.speedup.value if fix.speedup is not None else 0.0


def _advice(fix: Fix, said: Estimate, finding: Finding, known: Known) -> FixAdvice:
    applied = _applied(fix, said, known)
    habit, memory = known.habit(fix.habit), fix.memory_taken(known)
    controls = known.controls_of(fix)
    is_in_code = fix.by_setting and applied is None and not controls and known.controls is not None
    return FixAdvice(
        code=fix.code,
        summary=fix.summary,
        risk=fix.risk,
        effort="a flag" if controls else fix.effort,
        proviso=fix.proviso,
        speedup=applied or said,
        in_program=said if applied is not None and applied.value < said.value else None,
        value=fix.value(known) if fix.value is not None else None,
        by_hand=applied is None,
        memory=memory,
        takes_memory=fix.needs_memory and memory is None,
        controls=controls,
        where=_line_of(habit) if habit is not None else next(iter(finding.where if is_in_code else ()), None),
        instead=habit.instead if habit is not None else "",
    )


def _applied(fix: Fix, said: Estimate, known: Known) -> Estimate | None:
    """What it gains from outside, as `try` foretells it; None where it cannot be applied, or would gain nothing so."""
    applied = fix.foretell(known) if fix.takes is not None else None
    if applied is None or isinstance(applied, str):
        return None
    if fix.predict_applied is None:
        return said
    if applied.value <= CLAIMED:
        return None
    return msgspec.structs.replace(applied, high=min(applied.high, said.high)) if applied.value < said.value else said


def _line_of(habit: Habit) -> Line:
    return Line(file=habit.file, line=habit.line, function=habit.function, share=habit.share)


def _most(finding: Finding, fixes: list[FixAdvice], rewrite: Rewrite | None, known: Known) -> float | None:
    """What is done against a cost may free more than the cost itself: cores, and time between passes.

    Of the data path it is known how much that may be. What answers other costs too gains the more by those.
    """
    if finding.bound is None:
        return None
    own = [fix for fix in fixes if finding.code == _DATA or _ADDRESSED[fix.code] == (finding.code,)]
    gains = [gain.high for fix in own for gain in (fix.speedup, fix.in_program) if gain is not None]
    most = max([*gains, *([rewrite.gone.high] if rewrite is not None else [])], default=1.0)
    if most > finding.bound and finding.code == _DATA and known.without_data:
        return max(known.needs.step / known.without_data, most)
    return max(finding.bound, most)


def _at_most(gain: Estimate, bound: float | None) -> Estimate:
    """A fix for one cost alone gains no more than if that cost vanished, however unsure the steps are.

    Not where it likely gains more than that, by what it frees besides: then the bound is not the end of it.
    """
    if bound is None or gain.value > _BEYOND * bound:
        return gain
    return msgspec.structs.replace(gain, high=min(gain.high, max(bound, gain.value)))


def _rewrite(finding: Finding, known: Known) -> Rewrite | None:
    """The program's own function that costs most: what writing it anew, with what it calls, would gain."""
    phase = _WRITTEN.get(finding.code)
    if phase is not None:
        function = next((entry.heaviest for entry in known.ledger if entry.phase == phase), None)
    elif finding.code == _DATA and known.workers is not None and not known.workers.always_ready:
        function = known.workers.heaviest
    else:
        function = None
    if function is None:
        return None
    whole = share(function.whole, function.looks)
    halved, gone = (_at_most(_with_less(phase, whole, part, known), finding.bound) for part in (0.5, 1.0))
    paced = (known.controls or {}).get(finding.code, [])
    if gone.high <= CLAIMED:
        return None
    of_step = function.whole * known.share(phase) if phase is not None else None
    back = _with_backward(whole.high, gone.high, known) if phase == "loss" else None
    return Rewrite(where=_line(function), share=of_step, halved=halved, gone=gone, with_backward=back, controls=paced)


def _with_backward(whole: float, gone: float, known: Known) -> float | None:
    """The most that is gained without so much of the loss and without its part of the backward pass.

    That may be all that no part of the model takes of it; None where that is nothing, or not known.
    """
    backward = known.needs.host.get("backward", 0.0)
    if not known.backward_beside or not backward:
        return None
    left = 1 - min(known.backward_beside / backward, 1.0)
    most = bound(known.needs, Change(phases={"loss": 1 - whole, "backward": left}))
    return most if most > gone * CLAIMED else None


def _line(function: Function) -> Line:
    return Line(
        file=function.file,
        line=function.line,
        function=function.function,
        share=function.whole,
        inside=function.inside,
    )


def _with_less(phase: str | None, whole: Estimate, part: float, known: Known) -> Estimate:
    """Without a part of what has a share of a phase, or of the loader's work."""

    def without(of: float) -> Estimate:
        left = 1 - of * part
        if phase is not None:
            return gain(known.needs, Change(phases={phase: left}))
        return known.gain_of_data(Change(loader=Range(left, left, left)))

    least, likely, most = map(without, (whole.low, whole.value, whole.high))
    return msgspec.structs.replace(likely, low=least.low, high=most.high)
