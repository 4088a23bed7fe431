"""The loader and its workers: how long a sample takes, how busy they are, how full their queue is."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.fetching import Kind, kinds
from floorit.analyse.handover import Name
from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Function, Line, heaviest, lines
from floorit.analyse.operations import Operation, Reading, Watched
from floorit.analyse.operations import find as find_operations
from floorit.analyse.supply import Costs, Rate, Supply, costs, predict
from floorit.events import Process, Rows, Sample, Usage
from floorit.record import wire
from floorit.stats import Estimate, mean

_TRAINING = (wire.FORWARD, wire.BACKWARD, wire.OPTIMIZER)
FULL = 0.9  # of all batches that workers may be ahead, waiting when one is wanted: from here on the next is among them
# Of their time, that workers make batches: less, and they are not what crowds the cores, whoever pushes them aside.
AT_WORK = 0.2
MUCH_READ = 1 << 20  # bytes: less is the queue's own traffic


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
    heaviest: Function | None = None
    supply: Supply | None = None  # what the loader could give, with these workers and with others
    drained: list[Rate] = []  # what it gave by itself, in a run in which nothing trained
    batches_per_epoch: int | None = None
    idle_workers: int = 0  # that get no batch in an epoch
    short_epochs: bool = False  # workers start again for each epoch, which has no more batches than they fetch ahead
    shapes: list[str] = []  # of the first batches, each once
    shapes_vary: bool | None = None  # in more than the number of samples; None: fewer than two batches were seen
    time_in: list[Kind] = []  # reading, decoding and the rest, by looks at the workers; empty where there are none
    disk_share: float | None = None  # of the bytes that workers read, from storage and not from memory
    watched_batches: int = 0  # in which operations on images were timed
    watched_sample_seconds: float | None = None  # making a sample in them, collating included
    operations: list[Operation] = []  # on images, in those batches, most time first
    reading: Reading | None = None  # None where next to nothing is read, or it is not known
    threads: int | None = None  # of a worker, the most that one had
    helped_share: float | None = None  # of what workers compute, in other threads than the one that makes batches
    core_wait_share: float | None = None  # of the time in which a worker could run, waiting for a core

    @property
    def always_ready(self) -> bool:
        """Whether the next batch is made before it is wanted: if there is a wait, it is for taking it over."""
        return self.most_ahead > 0 and self.queue_mean is not None and self.queue_mean >= FULL * self.most_ahead

    @property
    def at_work(self) -> int:
        """Workers that crowd the cores: all or none, by how busy they are."""
        return self.count if self.busy_share is None or self.busy_share >= AT_WORK else 0

    @property
    def most_ahead(self) -> int:
        """Batches that may wait."""
        return self.count * (self.prefetch or 0)

    @property
    def dataset_share(self) -> float | None:
        """Of the time to make a batch, what the dataset takes; the rest is collate."""
        if self.fetch_seconds is None or self.collate_seconds is None:
            return None
        made = self.fetch_seconds + self.collate_seconds.value
        return self.fetch_seconds / made if made else None


def describe(
    process: Process,
    shared: Process | None,
    iterations: Iterations,
    usage: list[Usage] | None = None,
    cores: float | None = None,
) -> Workers | None:
    """The training loader's workers after warm-up, on so many cores; None if the program has no loader."""
    rows = process.rows
    trained = process.trained_iterators()
    loader = next(iter(process.loaders_of(trained)), None)
    if loader is None:
        return None
    begin = float(process.starts()[np.flatnonzero(iterations.of_row >= iterations.warmup)[0]])
    end = float(rows["end"][-1])
    source = shared if loader["workers"] else process
    pids = _makers(process, loader)
    fetches = source.fetches if source is not None else process.fetches[:0]
    fetches = fetches[np.isin(fetches["pid"], list(pids)) & (fetches["end"] >= begin) & (fetches["end"] <= end)]
    samples = _looks(process, source, trained, begin) if source is not None else []
    queued = rows[np.isin(rows["iterator"], trained) & (rows["ready"] != replay.NO_QUEUE) & (rows["end"] >= begin)]
    in_item = _in_item(fetches, iterations)
    per_sample = fetches["fetch"].astype(np.float64) / np.maximum(fetches["samples"] * in_item, 1)
    received = sum(r["batches"] for r in process.received)
    receive = sum(r["seconds"] for r in process.received) / received if received else None
    pinned = bool(loader["pin"]) and bool(len(process.device))
    own = [u for u in usage or [] if u.pid in pids]
    needs = costs(fetches, own, process, None if pinned else receive, in_process=not loader["workers"])
    watched = watched_batches(process, shared, begin, in_item)
    length = loader["length"]
    shapes = _shapes(process, loader["id"])
    training = _leading_to_training(process)
    return Workers(
        count=loader["workers"],
        busy_share=_busy(fetches, begin) if loader["workers"] else None,
        sample_seconds=mean(per_sample, least=0.0),
        fetch_seconds=float(fetches["fetch"].mean()) if len(fetches) else None,
        collate_seconds=mean(fetches["collate"].astype(np.float64), least=0.0),
        send_seconds=float(fetches["send"].mean()) if loader["workers"] and len(fetches) else None,
        receive_seconds=receive,
        queue_mean=float(queued["ready"].mean()) if len(queued) else None,
        queue_empty_share=float((queued["ready"] == 0).mean()) if len(queued) else None,
        prefetch=loader["prefetch"],
        pinned=pinned,
        where=[line for line in lines(samples) if (line.file, line.function) not in training],
        heaviest=heaviest(samples, besides=training),
        supply=predict(_counted(needs[0], in_item, iterations), loader["workers"], cores, needs[1])
        if needs and cores
        else None,
        batches_per_epoch=length,
        idle_workers=max(loader["workers"] - length, 0) if length else 0,
        short_epochs=_is_short(loader),
        shapes=list(dict.fromkeys(map(_words, shapes))),
        shapes_vary=len({_inner(shape) for shape in shapes}) > 1 if len(shapes) > 1 else None,
        time_in=kinds(samples) if loader["workers"] else [],
        disk_share=_from_disk(own),
        watched_batches=watched.batches if watched is not None else 0,
        watched_sample_seconds=watched.sample_seconds if watched is not None else None,
        operations=watched.operations if watched is not None else [],
        reading=watched.reading if watched is not None else None,
        **_crowd(own),
    )


def watched_batches(
    process: Process, shared: Process | None, begin: float = 0.0, in_item: float = 1.0
) -> Watched | None:
    """What was seen of operations on images, where the training loader's batches are made.

    `in_item`: samples that the dataset returns at once.
    """
    trained = process.trained_iterators()
    loader = next(iter(process.loaders_of(trained)), None)
    source = shared if loader is not None and loader["workers"] else process
    if loader is None or source is None:
        return None
    makers = _makers(process, loader)
    own = [note for note in source.operations if note["pid"] in makers]
    return find_operations([{**note, "samples": note["samples"] * in_item} for note in own], begin)


def _makers(process: Process, loader: dict[str, Any]) -> set[int]:
    """The processes that make the training loader's batches."""
    passes = [process.iterators[i] for i in process.trained_iterators() if i in process.iterators]
    return {pid for p in passes for pid in p["pids"]} if loader["workers"] else {process.key[1]}


def _looks(process: Process, source: Process, trained: list[int], begin: float) -> list[Sample]:
    """At where batches are made; in the training process, those of the evaluation left out."""
    making = [s for s in source.samples if s.phase == wire.DATA_WAIT and s.at >= begin]
    return making if source is not process else [s for s in making if s.iterator in trained]


def _leading_to_training(process: Process) -> set[Name]:
    """Functions that do not make batches. While torch's own code puts a batch together, the program's innermost line is
    the one that asked for it: its function leads to training, and none that makes batches does."""
    return {(place.file, place.function) for look in process.samples if look.phase in _TRAINING for place in look.stack}


def _is_short(loader: dict[str, Any]) -> bool:
    """Whether an epoch has no more batches than fresh workers fetch before the first is taken."""
    ahead = loader["workers"] * (loader["prefetch"] or 0)
    return bool(loader["length"]) and not loader["persistent"] and loader["length"] <= ahead


Shapes = tuple[tuple[int, ...], ...]  # of the tensors in a batch


def _shapes(process: Process, loader: int) -> list[Shapes]:
    return [tuple(map(tuple, note["shapes"])) for note in process.shapes if note["loader"] == loader]


def _inner(shapes: Shapes) -> Shapes:
    """Without the number of samples: the last batch of an epoch may be smaller."""
    return tuple(shape[1:] for shape in shapes)


def _words(shapes: Shapes) -> str:
    return ", ".join(" x ".join(map(str, shape)) or "a number" for shape in shapes)


def _from_disk(usage: list[Usage]) -> float | None:
    """The share of what was read that came from storage; None where next to nothing was read."""
    read = sum(u.read for u in usage)
    return min(sum(u.from_disk for u in usage) / read, 1.0) if read > MUCH_READ else None


def _crowd(usage: list[Usage]) -> dict[str, Any]:
    """The workers' threads, and how they get on with each other; nothing where it was not read."""
    own, waited = sum(u.cpu for u in usage), sum(u.waited for u in usage)
    everyone = sum(u.cpu_of_all for u in usage)
    if not everyone or not own:
        return {}
    return {
        "threads": max(u.threads for u in usage),
        "helped_share": max(1 - own / everyone, 0.0),
        "core_wait_share": waited / (waited + own),
    }


def _in_item(fetches: Rows, iterations: Iterations) -> float:
    """Samples that the dataset returns at once, as the run counts them: it may make whole batches."""
    fetched, in_step = fetches["samples"].sum() / max(len(fetches), 1), iterations.samples[iterations.warmup :].mean()
    is_batch = iterations.border == "batches" and fetched and in_step >= 2 * fetched
    return float(in_step / fetched) if is_batch else 1.0


def _counted(found: Costs, in_item: float, iterations: Iterations) -> Costs:
    """With samples as the run counts them, and with the loop's pace."""
    steps = iterations.after_warmup
    made = len(steps) / float(steps.sum()) if iterations.border == "batches" and steps.any() else 0.0
    return msgspec.structs.replace(found, samples=found.samples * in_item, made=made)


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
