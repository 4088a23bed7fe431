"""What a step needs of the host, of the loader and of the GPU, told apart from what each of them waits for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from floorit.analyse.gpu import Gpu, own_seconds, usual_idle
from floorit.analyse.input import Workers
from floorit.analyse.ledger import Entry
from floorit.stats import Estimate

# Phases in which the GPU is given work.
ISSUING = ("forward", "loss", "backward", "recompute", "optimizer")
_ON_GPU = ("h2d", "grad_sync", *ISSUING)
_OWN = ("other", "unattributed", "logging")
# What lies between steps and not in each of them.
BETWEEN = ("eval", "checkpoint", "epoch_gap")
# Which idle time of the GPU a phase of the host is to blame for.
_BLAMED = {
    **dict.fromkeys(ISSUING, "launch"),
    **dict.fromkeys(("other", "unattributed", "logging"), "other"),
    "h2d": "h2d",
    "grad_sync": "comm",
    "sync": "sync",
    "data_wait": "data_wait",
}
# A phase that takes so many times as long on the GPU's clock as on the host's: the GPU is behind, and so is busy.
_BEHIND = 1.2
# Of the median step: a window whose steps were shorter is not like the rest of the run, and only its shares count.
_ALIKE = 0.5
# Of a step: the wait for data must be more for the loader to be what limits it.
STARVED = 0.02
# Where a line that takes batches from workers is found waiting for them.
WAITING_FOR_WORKERS = ("_PollLikeSelector.select", "Condition.wait", "Connection._recv", "wait")


class Range(msgspec.Struct, frozen=True):
    """A number that is only known to lie between two others."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Range:
        """The same, so many times as large."""
        return Range(self.low * factor, self.likely * factor, self.high * factor)


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the batches."""

    workers: int
    work: Range  # seconds that one process needs for a batch
    receive: float  # seconds that the loop needs to take a batch over from a worker
    ahead: float  # batches that are still made when the loop takes none: those asked for, of which some are half done


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a mean step, and what they rest on."""

    step: float
    n: int  # steps measured
    spread: float  # of the step, relative: half the width of its interval
    host: dict[str, float]  # by phase, as in the ledger, but all time that it is seen to be blocked is `sync`
    waits: float = 0.0  # of `sync`, in calls that the ledger counts among other phases
    device: dict[str, float]  # by phase on the GPU's clock, idle time included; empty without a GPU
    gpu: Range | None  # busy; None without a GPU
    idle: dict[str, float] | None  # of the GPU by cause; None where no kernel window has seen it
    idle_in: dict[str, float] = {}  # of the GPU by the host's phase, whatever the cause; empty where it is not known
    bursts: float = 0.0  # of the program's own code, longer than what the GPU may still have to do
    copies_alone: float  # the GPU did nothing but copy from the host; 0 where it is not known
    loader: Loader | None  # None: there is none, or steps are not batches
    cores: float | None  # that this rank may use
    threads: Range  # cores that the loop keeps busy while it computes
    passes: float  # over the training data, a step
    evals: float  # evaluations, a step
    eval_waits: float  # of the evaluation, waiting for its loader's workers

    @property
    def within(self) -> float:
        """The step without what comes between steps."""
        return self.step - sum(self.host.get(phase, 0.0) for phase in BETWEEN)

    @property
    def loop(self) -> float:
        """What the loop does in every step, without waiting for data."""
        return self.within - self.host.get("data_wait", 0.0)

    @property
    def wait(self) -> float:
        """Waiting for the loader, without what it takes to receive a batch."""
        receive = self.loader.receive if self.loader is not None else 0.0
        return max(self.host.get("data_wait", 0.0) - receive, 0.0)

    @property
    def crowd(self) -> float:
        """How many times the cores are taken by the loop and its workers together; 1 where they suffice."""
        if self.gpu is not None or self.loader is None or not self.cores or not self.step:
            return 1.0
        working = min(self.loader.work.high / self.step, self.loader.workers)  # workers, on average
        return max((working + self.threads.high) / self.cores, 1.0)

    @property
    def making(self) -> float:
        """Seconds in which the training process makes its batches itself: the host is busy, as in the loop."""
        return self.host.get("data_wait", 0.0) if self.loader is not None and not self.loader.workers else 0.0

    @property
    def starved(self) -> bool:
        """Whether the loop waits for data for a part of the step that is worth a name."""
        return self.wait > STARVED * self.step

    @property
    def catches_up(self) -> bool:
        """Whether the GPU has done all that it was given before a step is over: the host is blocked until then."""
        return bool(self.idle) and self.host.get("sync", 0.0) > STARVED * self.step

    def busy_in(self, phase: str) -> float:
        """GPU seconds of the work given to it in a phase, as far as they can be told.

        Divided as its own clock says; where no step was marked on that, as the host's time to give it that work.
        """
        clock = self.device if any(self.device.get(p) for p in _ON_GPU) else self.host
        total = sum(clock.get(p, 0.0) for p in _ON_GPU)
        if self.gpu is None or not total or phase not in _ON_GPU:
            return 0.0
        computing = max(self.gpu.likely - self.copies_alone, 0.0)
        return computing * clock.get(phase, 0.0) / total

    def idle_by(self, phase: str) -> float:
        """Seconds that the GPU is idle because the host is in a phase; without a window, nothing is known of it."""
        cause = _BLAMED.get(phase)
        if self.idle is None or cause is None:
            return 0.0
        others = sum(self.host.get(p, 0.0) for p, c in _BLAMED.items() if c == cause)
        return self.idle.get(cause, 0.0) * self.host.get(phase, 0.0) / others if others else 0.0


def find(
    *,
    ledger: Sequence[Entry],
    step: float,
    median: Estimate,
    steps: int,
    batch: float | None,
    workers: Workers | None,
    gpu: Gpu | None,
    cores: float | None,
    threads: int | None,
    epochs: int,
    evals: int,
) -> Needs:
    """From the values of a report. `batch`: samples in one, for reports that tell a sample's seconds and no batch's."""
    spent = {entry.phase: entry.seconds for entry in ledger}
    moved = _waits(spent, gpu)
    host = {
        **{p: s - moved.get(p, 0.0) for p, s in spent.items()},
        "sync": spent.get("sync", 0.0) + sum(moved.values()),
    }
    device = {entry.phase: entry.gpu_seconds for entry in ledger if entry.gpu_seconds}
    within = step - sum(host.get(phase, 0.0) for phase in BETWEEN)
    busy = _busy(gpu, host, device, median.value, within)
    idle = _idle(gpu, busy, within, host.get("data_wait", 0.0), own_seconds(ledger))
    usable = threads if threads is not None else cores
    return Needs(
        step=step,
        n=median.n,
        spread=_spread(median),
        host=host,
        waits=sum(moved.values()),
        device=device,
        gpu=busy,
        idle=None if idle is None else {cause: sum(phases.values()) for cause, phases in idle.items()},
        idle_in=_idle_in(idle or {}),
        bursts=sum(entry.bursts for entry in ledger if entry.phase in _OWN),
        copies_alone=_watched(gpu, gpu.uploads_alone_share or 0.0, median.value, within) if gpu is not None else 0.0,
        loader=_loader(workers, batch, host.get("data_wait", 0.0), cores, None if busy else usable),
        cores=cores,
        threads=Range(1.0, 1.0, 1.0) if busy or not usable else Range(1.0, usable**0.5, float(usable)),
        passes=epochs / steps if steps else 0.0,
        evals=evals / steps if steps else 0.0,
        eval_waits=_eval_waits(ledger),
    )


def _waits(host: dict[str, float], gpu: Gpu | None) -> dict[str, float]:
    """What the host waits for the GPU inside of other phases, as where it indexes by a mask: no work of theirs.

    The steps that were watched may have waited longer than all of a phase takes in others.
    """
    seen = gpu.waits if gpu is not None else {}
    return {phase: min(spent, host.get(phase, 0.0)) for phase, spent in seen.items()}


def _spread(step: Estimate) -> float:
    """Relative, and never more than the whole."""
    return min((step.high - step.low) / 2 / step.value, 1.0) if step.value else 1.0


def _busy(
    gpu: Gpu | None, host: dict[str, float], device: dict[str, float], median: float, within: float
) -> Range | None:
    """Seconds that the GPU works in a step: seen in the kernel window, else bounded by what its clock says."""
    if gpu is not None and gpu.busy_share is not None:
        busy = _watched(gpu, gpu.busy_share, median, within)
        return Range(busy, busy, busy)
    if not device:
        return None
    high = min(sum(device.get(phase, 0.0) for phase in _ON_GPU), within)
    behind = sum(s for phase, s in device.items() if phase in _ON_GPU and s > _BEHIND * host.get(phase, 0.0))
    low = min(max(behind, host.get("sync", 0.0)), high)
    return Range(low, (low + high) / 2, high)


def _watched(gpu: Gpu, share: float, median: float, within: float) -> float:
    """Seconds of a share of the steps that were watched."""
    watched = gpu.step_seconds or 0.0
    return min(share * (watched if watched >= _ALIKE * median else median), within)


def _idle(
    gpu: Gpu | None, busy: Range | None, within: float, waits: float, own: dict[str, float]
) -> dict[str, dict[str, float]] | None:
    if gpu is None or gpu.busy_share is None or busy is None:
        return None
    return usual_idle(gpu, max(within - busy.likely, 0.0), waits, own)


def _idle_in(idle: dict[str, dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for phases in idle.values():
        for phase, spent in phases.items():
            found[phase] = found.get(phase, 0.0) + spent
    return found


def _loader(
    workers: Workers | None, batch: float | None, waited: float, cores: float | None, threads: float | None
) -> Loader | None:
    """A batch's work was timed while other threads had the cores too: by itself it may take less."""
    if workers is None:
        return None
    if not workers.count:
        return Loader(workers=0, work=Range(waited, waited, waited), receive=0.0, ahead=0.0)
    fetch = workers.fetch_seconds
    if fetch is None and workers.sample_seconds is not None and batch is not None:
        fetch = workers.sample_seconds.value * batch
    if fetch is None:
        return None
    work = fetch + (workers.send_seconds or 0.0)
    work += workers.collate_seconds.value if workers.collate_seconds is not None else 0.0
    crowd = max((workers.count + threads) / cores, 1.0) if cores and threads else 1.0
    # Pinned batches are received by a thread of their own.
    receive = 0.0 if workers.pinned else min(workers.receive_seconds or 0.0, waited)
    return Loader(
        workers=workers.count,
        work=Range(work / crowd, work / crowd**0.5, work),
        receive=waited if workers.always_ready else receive,
        ahead=max(workers.count * ((workers.prefetch or 0) - 0.5), 0.0),
    )


def _eval_waits(ledger: Sequence[Entry]) -> float:
    lines = [line for entry in ledger if entry.phase == "eval" for line in entry.where]
    return min(sum(line.share for line in lines if line.inside in WAITING_FOR_WORKERS), 1.0)
