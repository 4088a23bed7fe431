"""A process that trained, as the report sees it."""

from __future__ import annotations

import msgspec
import numpy as np

from floorit.analyse import iterations, ledger, ranks
from floorit.events import Process, RecordReader
from floorit.record import wire
from floorit.report.model import StepFacts
from floorit.stats import median


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """A process that trained, and its iterations."""

    process: Process
    iterations: iterations.Iterations
    ledger: ledger.Ledger
    step: StepFacts


def examine(process: Process, warmup: int | None = None) -> Trained | None:
    """A process with its ledger; None if it never trained."""
    found = iterations.find(process, warmup)
    if found is None:
        return None
    drawn = ledger.draw(process, found)
    times = found.after_warmup
    middle = median(times)
    if middle is None:
        return None
    step = StepFacts(mean=drawn.mean, seconds=middle, p95=float(np.percentile(times, 95)))
    return Trained(process=process, iterations=found, ledger=drawn, step=step)


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that trained, as far as the report needs to know it beside the first."""

    member: ranks.Member
    step: StepFacts
    samples: float  # in a step after warm-up
    used_cuda: bool

    @property
    def rank(self) -> int:
        return self.member.rank


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """All processes of a record that trained."""

    first: Trained | None  # by rank
    peers: list[Peer]  # all of them, by rank, the first among them
    on_gpu: int  # processes that were seen to use one


def peer(trained: Trained) -> Peer:
    """What is kept of a rank when the next one is read."""
    samples = float(trained.iterations.samples[trained.iterations.warmup :].mean())
    return Peer(member=ranks.member(trained), step=trained.step, samples=samples, used_cuda=used_cuda(trained.process))


def gathered(reader: RecordReader, warmup: int | None = None) -> Merged:
    """All ranks of a record that has been read."""
    trained = of_record(reader, warmup)
    on_gpu = sum(map(used_cuda, reader.run()))
    return Merged(first=trained[0] if trained else None, peers=[peer(one) for one in trained], on_gpu=on_gpu)


def of_record(reader: RecordReader, warmup: int | None = None) -> list[Trained]:
    """Every process that trained, by rank."""
    return [t for process in reader.run() if (t := examine(process, warmup)) is not None]


def batch(trained: Trained) -> float | None:
    """Samples in a batch of one rank, where they were counted."""
    return float(trained.iterations.samples[trained.iterations.warmup :].mean()) or None


def used_cuda(process: Process) -> bool:
    """Whether anything was seen of a GPU."""
    watched = process.memory_peak is not None or "file" in (process.window or {})
    return bool(watched or len(process.device) or process.syncs or process.rows["seconds"][:, wire.H2D].any())


def stretch(trained: Trained) -> tuple[float, float]:
    """When the steps after warm-up began, and when the last row ended."""
    after = np.flatnonzero(trained.iterations.of_row >= trained.iterations.warmup)
    return float(trained.process.starts()[after[0]]), float(trained.process.rows["end"][-1])


def watched(trained: Trained) -> list[tuple[float, float]]:
    """When windows slowed steps down, and until when: several times, where new processes closed them."""
    rows = np.flatnonzero(trained.iterations.windowed)
    starts, ends = trained.process.starts(), trained.process.rows["end"]
    on_end = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []
    return [(float(starts[each[0]]), float(ends[each[-1]])) for each in on_end]
