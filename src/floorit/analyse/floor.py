"""The floor: the ladder from the step as it is down to the fastest that the same work could go on this machine."""

from __future__ import annotations

from itertools import accumulate

import msgspec

from floorit.analyse import stepmodel
from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Ledger
from floorit.analyse.limit import Limit
from floorit.analyse.needs import Needs
from floorit.stats import seconds as words

STEP, WITHOUT_DATA, WITHOUT_WAITING, LIMIT = "step", "without data", "without waiting", "physical limit"
_DATA = ("data_wait", "epoch_gap")
_RARE = ("eval", "checkpoint")  # a short run sees these too rarely, or not at all


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One rung: seconds a step, and how they were found."""

    name: str
    seconds: float
    how: str
    estimate: bool = False  # worked out from the ledger, not measured
    least: float | None = None  # seconds that an estimate may be as short as; None: that is not known


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The rungs from the top, and how many times longer a step takes than the lowest above the physical limit."""

    rungs: list[Rung]
    gap: float
    limit: Limit | None = None  # what the physical limit rests on

    @property
    def without_data(self) -> float | None:
        """Seconds of a step without its data path; None where that is only an estimate."""
        return next((r.seconds for r in self.rungs if r.name == WITHOUT_DATA and not r.estimate), None)

    @property
    def least_without_data(self) -> float | None:
        """Seconds that no change to the data path can make a step shorter than; None where they are not known."""
        return self.without_data or next((r.least for r in self.rungs if r.name == WITHOUT_DATA), None)

    @property
    def takes_only_data(self) -> bool:
        """Whether nothing is known of a step but what it is without its data: there is no GPU, or none was watched."""
        return all(rung.name != WITHOUT_WAITING for rung in self.rungs)

    @property
    def most(self) -> float:
        """The gap, if the lowest rung above the physical limit is as short as it may be."""
        lowest = [rung for rung in self.rungs if rung.name != LIMIT][-1]
        return self.rungs[0].seconds / lowest.least if lowest.least else self.gap


def ladder(
    ledger: Ledger,
    gpu: Gpu | None,
    floor: Ledger | None,
    floor_gpu: Gpu | None,
    limit: Limit | None = None,
    of_ranks: float | None = None,
    needs: Needs | None = None,
) -> Floor:
    """From the run as it was and, where there is one, from the run without its data path.

    `of_ranks` is what a step would be shorter by if no rank waited for data, where several go in step. `needs` says
    how much shorter an estimate may be.

    Where nothing is to be had between two rungs, the lower may have been measured a little higher: it is as high then.
    """
    rungs = [Rung(name=STEP, seconds=ledger.mean, how="mean of the steady steps, with what lies between them")]
    busy = _busy(floor_gpu) or _busy(gpu)
    if floor is None:
        rungs.append(_estimated(ledger, busy or 0.0, _uploads(gpu) or 0.0, of_ranks, needs))
    else:
        rungs.append(_measured(ledger, floor, _uploads(floor_gpu) or 0.0))
    if busy is not None:
        how = "the GPU's busy time of a step, by the kernel window; copies from the host by themselves left out"
        rungs.append(Rung(name=WITHOUT_WAITING, seconds=busy, how=how))
    heights = accumulate((rung.seconds for rung in rungs), min)
    rungs = [_lowered(rung, seconds) for rung, seconds in zip(rungs, heights, strict=True)]
    lowest = rungs[-1].seconds
    if limit is not None:
        rungs.append(Rung(name=LIMIT, seconds=limit.seconds, how=limit.how))
    return Floor(rungs=rungs, gap=ledger.mean / lowest if lowest else 1.0, limit=limit)


def _lowered(rung: Rung, seconds: float) -> Rung:
    """A rung no higher than so many seconds."""
    least = min(rung.least, seconds) if rung.least is not None else None
    return msgspec.structs.replace(rung, seconds=seconds, least=least)


def _estimated(ledger: Ledger, busy: float, uploads: float, of_ranks: float | None, needs: Needs | None) -> Rung:
    """The GPU works while the host waits for data, so what it needs stays when the wait is gone.

    It is the most that the step would take: without workers beside it, the loop may have more of the cores.
    """
    waited = ledger.seconds(*_DATA) if of_ranks is None else of_ranks
    seconds = max(ledger.mean - waited - uploads, busy)
    whose = "its waiting" if of_ranks is None else "what the slowest rank is slower by for waiting"
    how = f"the step less {whose} for data and for the loader to start"
    how += ", and no less than the GPU's work" if busy else ""
    least = None
    if needs is not None and of_ranks is None:
        least = min(max(stepmodel.without_data(needs) - uploads, busy), seconds)
    return Rung(name=WITHOUT_DATA, seconds=seconds, how=how + _less(uploads), estimate=True, least=least)


def _measured(ledger: Ledger, floor: Ledger, uploads: float) -> Rung:
    """A batch that is repeated is still copied to the GPU. That too is a cost of data, where nothing runs beside it."""
    seconds = floor.mean - floor.seconds(*_DATA, *_RARE) + ledger.seconds(*_RARE) - uploads
    how = "the same program again, its first batches repeated; evaluation and checkpoints as in the first run"
    return Rung(name=WITHOUT_DATA, seconds=seconds, how=how + _less(uploads))


def _less(uploads: float) -> str:
    return f"; less {words(uploads)} in which the GPU did nothing but copy from the host" if uploads else ""


def _busy(gpu: Gpu | None) -> float | None:
    uploads = _uploads(gpu)
    if gpu is None or gpu.busy_share is None or gpu.step_seconds is None or uploads is None:
        return None
    return gpu.busy_share * gpu.step_seconds - uploads


def _uploads(gpu: Gpu | None) -> float | None:
    """Seconds in which it does nothing but copy from the host; None where it was not watched."""
    return (gpu.uploads_alone_share or 0.0) * gpu.step_seconds if gpu is not None and gpu.step_seconds else None
