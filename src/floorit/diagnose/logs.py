"""Logging: the calls that write, and the code that makes what they write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from floorit.analyse.callers import Looks
from floorit.analyse.ledger import lines
from floorit.analyse.stepmodel import Change, bound
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED, WRITES
from floorit.events import Sample
from floorit.stats import seconds

Function = tuple[str, str]  # file, name
# A function that is entered in any other phase does more than log.
_OF_LOGGING = ("logging", "other", "sync")


def find(facts: Facts) -> list[Finding]:
    """One finding, if writing and what is written together are worth naming."""
    ledger = facts.ledger
    making = _making(ledger.looks)
    own = ledger.looks.get("other", [])
    made = ledger.seconds("other") * len(making) / len(own) if making else 0.0
    share = (ledger.seconds("logging") + made) / ledger.mean if ledger.mean else 0.0
    gone = {"logging": 0.0, "other": 1 - len(making) / len(own) if making else 1.0}
    most = bound(facts.needs, Change(phases=gone))
    if most <= NAMED:
        return []
    evidence = [
        f"{seconds(ledger.seconds('logging'))} of a step of {seconds(ledger.mean)}:"
        " printing, progress bars, scalars, figures and images written by the training thread"
    ]
    if making:
        evidence.append(f"and {seconds(made)} in the functions that make what is written; python-bound counts it too")
    return [
        Finding(
            code="logging-bound",
            title="logging takes the time",
            share=share,
            bound=most,
            evidence=evidence,
            where=lines([*ledger.looks.get("logging", ()), *making]),
        )
    ]


def _making(looks: Looks) -> list[Sample]:
    """Looks at the program's own code inside of functions that are there to log: they write, and train nothing."""
    busy = {function for phase in looks if phase not in _OF_LOGGING for function in _count(looks[phase])}
    writing, own = _count(looks.get("logging", ())), _count(looks.get("other", ()))
    loggers = {
        function
        for function, count in writing.items()
        if function not in busy and count >= WRITES * (count + own[function])
    }
    return [sample for sample in looks.get("other", ()) if loggers & _functions(sample)]


def _count(samples: Iterable[Sample]) -> Counter[Function]:
    """How many of the looks found each function at work, itself or what it called."""
    return Counter(function for sample in samples for function in _functions(sample))


def _functions(sample: Sample) -> set[Function]:
    return {(place.file, place.function) for place in sample.stack}
