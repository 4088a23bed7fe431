"""What to do about each finding: the fixes that answer it, what they should gain, and which would not help."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from floorit.analyse import handover
from floorit.analyse.ledger import heaviest_function
from floorit.analyse.needs import Range
from floorit.analyse.stepmodel import Change, gain, limit
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Finding, FixAdvice, NotAdvised, Rewrite
from floorit.diagnose.thresholds import NAMED
from floorit.fixes import ALL
from floorit.fixes.fix import CLAIMED, NO_GPU, Fix, Known
from floorit.stats import Estimate

_IGNORED = "setting-ignored"
LITTLE = 1.25  # a switch that takes a fifth of the step comes first, whatever else there is
_BEYOND = 1.005  # times a bound: as much is the bound itself, reckoned in another way
# Findings whose code can only be written anew, and the phase that it costs.
_WRITTEN = {"python-bound": "other", "loss-bound": "loss"}


def advise(findings: list[Finding], known: Known) -> list[Finding]:
    """The findings with their fixes; what would not help stands under the first."""
    weighed = [(fix, _weighed(fix, known)) for fix in ALL]
    advised = [_advised(finding, weighed, known) for finding in findings]
    advised = verdict_first(_causes_first(advised))
    taken = {advice.code for finding in advised for advice in finding.fixes}
    useless = [
        NotAdvised(code=fix.code, reason=said)
        for fix, said in weighed
        if isinstance(said, str) and fix.popular and fix.code not in taken and not said.startswith(NO_GPU)
    ]
    return [msgspec.structs.replace(f, not_advised=useless) for f in advised[:1]] + advised[1:]


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
    if not known.on_gpu or not blocked:
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


def _advised(finding: Finding, weighed: Iterable[tuple[Fix, Estimate | str]], known: Known) -> Finding:
    if finding.fixes:
        return finding  # it knows what to do itself
    ignored = {setting.name for setting in known.settings if setting.ignored}
    answers = [
        (_at_most(said, finding.bound) if fix.addresses == (finding.code,) else said, fix)
        for fix, said in weighed
        if isinstance(said, Estimate)
        and (finding.code in fix.addresses or (finding.code == _IGNORED and fix.setting in ignored))
    ]
    fixes = [
        FixAdvice(
            code=fix.code,
            summary=fix.summary,
            risk=fix.risk,
            effort=fix.effort,
            proviso=fix.proviso,
            speedup=said,
            value=fix.value(known) if fix.value is not None else None,
            by_hand=fix.takes is None or isinstance(fix.foretell(known), str),
            memory=known.memory_with(fix.code),
        )
        for said, fix in sorted(answers, key=lambda answer: -answer[0].value)
    ]
    rewrite = _rewrite(finding, known)
    return msgspec.structs.replace(finding, fixes=fixes, rewrite=rewrite, bound=_most(finding, fixes, rewrite, known))


def _most(finding: Finding, fixes: list[FixAdvice], rewrite: Rewrite | None, known: Known) -> float | None:
    """What is done against a cost may free more than the cost itself: cores, and time between passes.

    Of the data path it is known how much that may be.
    """
    if finding.bound is None:
        return None
    gains = [fix.speedup.high for fix in fixes if fix.speedup is not None]
    most = max([*gains, *([rewrite.gone.high] if rewrite is not None else [])], default=1.0)
    if most > finding.bound and finding.code == "input-bound" and known.without_data:
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
    """The program's own function that costs most, by its first line: what writing it anew would gain."""
    phase = _WRITTEN.get(finding.code)
    if phase is not None:
        where = next((entry.where for entry in known.ledger if entry.phase == phase), [])
    elif finding.code == "input-bound" and known.workers is not None and not known.workers.always_ready:
        where = known.workers.where
    else:
        where = []
    function = heaviest_function([line for line in where if handover.package(line.file) is None])
    if function is None:
        return None
    halved, gone = (_at_most(_with_less(phase, function.share * part, known), finding.bound) for part in (0.5, 1.0))
    share = function.share * known.share(phase) if phase is not None else None
    return Rewrite(where=function, share=share, halved=halved, gone=gone) if gone.high > CLAIMED else None


def _with_less(phase: str | None, share: float, known: Known) -> Estimate:
    """Without a share of a phase, or of the loader's work."""
    left = 1 - share
    if phase is not None:
        return gain(known.needs, Change(phases={phase: left}))
    return known.gain_of_data(Change(loader=Range(left, left, left)))
