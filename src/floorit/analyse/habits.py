"""What reading the source proposes, at the lines where a run has spent time: reading proposes, measuring decides."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from floorit.analyse.ledger import Ledger
from floorit.analyse.syncs import SyncPoint
from floorit.declared import Control
from floorit.events import Process, Sample
from floorit.record import wire
from floorit.scan.finding import Finding, Risk

LEAST = 0.01  # of the step, or of what makes batches: a line below it is cold
_FEWEST = 3  # looks at a line: fewer may be by chance


class Habit(msgspec.Struct, frozen=True, kw_only=True):
    """A line that reading the source has something to say about, and what it took."""

    code: str
    file: str
    line: int
    function: str
    message: str
    instead: str
    unsafe: str
    risk: Risk
    seconds: float | None  # a step, with all that the line calls; None where batches are made, beside the training
    share: float  # of the step; there, of the time in which batches are made
    line_share: float | None = None  # of the line alone, where `share` is of all that the function around it does
    controls: list[Control] = []  # settings of the program that it is due to


def files(processes: Iterable[Process]) -> list[str]:
    """The program's own files that a look at any stack has met, and the files of settings that it has read."""
    met: set[str] = set()
    for process in processes:
        met.update(str(note["path"]) for note in process.configs)
        for sample in process.samples:
            places = (*sample.stack, *([sample.user] if sample.user is not None else []))
            met.update(place.file for place in places if place.is_users and place.file.endswith(".py"))
    return sorted(met)


def find(read: list[Finding], ledger: Ledger, points: list[SyncPoint], workers: Process | None) -> list[Habit]:
    """Those whose lines took time, in the training process or in its loader's workers, the longest first."""
    making = [sample for sample in workers.samples if sample.phase == wire.DATA_WAIT] if workers is not None else []
    fetching = making or ledger.looks.get("data_wait", [])
    found = [
        _around(finding, fetching)
        if finding.spares_function
        else _at_work(finding, ledger, points) or _beside(finding, making)
        for finding in read
    ]
    habits = [habit for habit in found if habit is not None and habit.share >= LEAST]
    return sorted(habits, key=lambda habit: (habit.seconds is None, -habit.share))


def _at_work(finding: Finding, ledger: Ledger, points: list[SyncPoint]) -> Habit | None:
    """Of a line that the training thread was at. A call that only waits costs what it waited, not what else the line
    does."""
    if finding.is_wait:
        seconds: float | None = sum(p.seconds for p in points if _covers(finding, p.file, p.line)) or None
    else:
        seconds = _seen(finding, ledger)
    return _habit(finding, seconds, seconds / ledger.mean) if seconds is not None and ledger.mean else None


def _seen(finding: Finding, ledger: Ledger) -> float | None:
    """Seconds a step, by looks at the stack."""
    seconds, looks = 0.0, 0
    for phase, samples in ledger.looks.items():
        here = [sample.weight for sample in samples if _is_at(finding, sample)]
        looks += len(here)
        seconds += ledger.seconds(phase) * sum(here) / sum(sample.weight for sample in samples) if here else 0.0
    return seconds if looks >= _FEWEST else None


def _beside(finding: Finding, making: list[Sample]) -> Habit | None:
    """Of a line that a worker was at."""
    here = [sample for sample in making if _is_at(finding, sample)]
    if len(here) < _FEWEST or finding.is_wait:
        return None
    return _habit(finding, None, _weight(here) / _weight(making))


def _around(finding: Finding, making: list[Sample]) -> Habit | None:
    """Of a line and all that its function does, where batches are made; of one that is still met later on, as what is
    done once for each sample is not."""
    here = [sample for sample in making if _is_at(finding, sample)]
    inside = [sample for sample in making if _is_in_function(finding, sample)]
    if len(inside) < _FEWEST or not any(_is_at(finding, sample) for sample in making[len(making) // 2 :]):
        return None
    made = _habit(finding, None, _weight(inside) / _weight(making))
    return msgspec.structs.replace(made, line_share=_weight(here) / _weight(making))


def _weight(samples: list[Sample]) -> float:
    return sum(sample.weight for sample in samples)


def _is_in_function(finding: Finding, sample: Sample) -> bool:
    names = (place.function.rpartition(".")[2] for place in sample.stack if place.file == finding.file)
    return finding.function in names


def _habit(finding: Finding, seconds: float | None, share: float) -> Habit:
    return Habit(
        code=finding.code,
        file=finding.file,
        line=finding.line,
        function=finding.function,
        message=finding.message,
        instead=finding.instead,
        unsafe=finding.unsafe,
        risk=finding.risk,
        seconds=seconds,
        share=share,
        controls=finding.controls,
    )


def _is_at(finding: Finding, sample: Sample) -> bool:
    places = sample.stack or ((sample.user,) if sample.user is not None else ())
    return any(_covers(finding, place.file, place.line) for place in places)


def _covers(finding: Finding, file: str, line: int) -> bool:
    first, last = finding.lines
    return file == finding.file and first <= line <= last
