"""The loader and its workers: how long a sample takes, how busy they are, how full their queue is."""

from __future__ import annotations

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Line, lines
from floorit.events import Process, Rows
from floorit.record import wire
from floorit.stats import Estimate, mean


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the batches."""

    count: int
    busy_share: float | None  # of the workers' time after warm-up; None where there are none
    sample_seconds: Estimate | None  # in the dataset, a sample
    fetch_seconds: float | None = None  # in the dataset, a batch
    collate_seconds: Estimate | None  # a batch
    send_seconds: float | None  # a batch, in the worker: pickling, moving to shared memory
    receive_seconds: float | None  # a batch, in the training process
    queue_mean: float | None  # batches that waited when one was asked for
    queue_empty_share: float | None  # of the times when one was asked for
    prefetch: int | None  # batches each worker may be ahead
    pinned: bool
    where: list[Line]


def describe(process: Process, shared: Process | None, iterations: Iterations) -> Workers | None:
    """The training loader's workers after warm-up; None if the program has no loader."""
    rows = process.rows
    trained = process.trained_iterators()
    passes = [process.iterators[i] for i in trained if i in process.iterators]
    loader = next(iter(process.loaders_of(trained)), None)
    if loader is None:
        return None
    begin = float(process.starts()[np.flatnonzero(iterations.of_row >= iterations.warmup)[0]])
    end = float(rows["end"][-1])
    source = shared if loader["workers"] else process
    pids = {pid for p in passes for pid in p["pids"]} if loader["workers"] else {process.key[1]}
    fetches = source.fetches if source is not None else process.fetches[:0]
    fetches = fetches[np.isin(fetches["pid"], list(pids)) & (fetches["end"] >= begin) & (fetches["end"] <= end)]
    samples = [s for s in source.samples if s.phase == wire.DATA_WAIT and s.at >= begin] if source else []
    queued = rows[np.isin(rows["iterator"], trained) & (rows["ready"] != replay.NO_QUEUE) & (rows["end"] >= begin)]
    per_sample = fetches["fetch"].astype(np.float64) / np.maximum(fetches["samples"], 1)
    received = sum(r["batches"] for r in process.received)
    return Workers(
        count=loader["workers"],
        busy_share=_busy(fetches, begin) if loader["workers"] else None,
        sample_seconds=mean(per_sample),
        fetch_seconds=float(fetches["fetch"].mean()) if len(fetches) else None,
        collate_seconds=mean(fetches["collate"].astype(np.float64)),
        send_seconds=float(fetches["send"].mean()) if loader["workers"] and len(fetches) else None,
        receive_seconds=sum(r["seconds"] for r in process.received) / received if received else None,
        queue_mean=float(queued["ready"].mean()) if len(queued) else None,
        queue_empty_share=float((queued["ready"] == 0).mean()) if len(queued) else None,
        prefetch=loader["prefetch"],
        pinned=bool(loader["pin"]) and bool(len(process.device)),
        where=lines(samples),
    )


def _busy(fetches: Rows, begin: float) -> float | None:
    """The share of each worker's time that it spent making batches, over all workers."""
    busy = alive = 0.0
    for pid in np.unique(fetches["pid"]):
        own = fetches[fetches["pid"] == pid]
        work = own["fetch"].astype(np.float64) + own["collate"]
        first = max(begin, float(own["end"][0] - work[0]))
        busy += float(np.minimum(work, own["end"] - begin).sum())
        alive += float(own["end"][-1]) - first
    return min(busy / alive, 1.0) if alive > 0 else None
