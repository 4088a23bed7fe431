"""The program's own code that is there for a cost: what draws a picture to be logged, what moves a saved file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from floorit.analyse.callers import Looks
from floorit.diagnose.thresholds import WRITES
from floorit.events import Sample

Function = tuple[str, str]  # file, name
# A function that is entered in any other phase, but for the cost's own, does more.
_BESIDE = ("logging", "other", "sync")


def find(phase: str, looks: Looks) -> list[Sample]:
    """Looks at the program's own code inside of functions that are there for a phase: they write, and train nothing."""
    busy = {function for other in looks if other not in (phase, *_BESIDE) for function in _count(looks[other])}
    writing, own = _count(looks.get(phase, ())), _count(looks.get("other", ()))
    there_for_it = {
        function
        for function, count in writing.items()
        if function not in busy and count >= WRITES * (count + own[function])
    }
    return [sample for sample in looks.get("other", ()) if there_for_it & _functions(sample)]


def _count(samples: Iterable[Sample]) -> Counter[Function]:
    """How many of the looks found each function at work, itself or what it called."""
    return Counter(function for sample in samples for function in _functions(sample))


def _functions(sample: Sample) -> set[Function]:
    return {(place.file, place.function) for place in sample.stack}
