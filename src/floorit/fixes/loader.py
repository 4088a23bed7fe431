"""Batches: made sooner, by more processes, or with less work."""

from __future__ import annotations

import math
import re

from floorit.analyse.input import Workers
from floorit.analyse.needs import BETWEEN, Range
from floorit.analyse.operations import Operation
from floorit.analyse.stepmodel import Change, bound, without
from floorit.fixes import values
from floorit.fixes.fix import CLAIMED, NO_LOADER, Fix, Known
from floorit.fixes.values import Value
from floorit.stats import Estimate, seconds

# Busy for more than this share of their time, workers are what limits: a longer queue makes nothing faster.
_SATURATED = 0.9
# Workers, batches ahead, threads: nobody means more, and a slip of the finger would start as many.
_MOST = 1024
_FURTHER = 4  # batches ahead of each worker; torch's default is 2
_NEVER_READ = "cache-never-read"  # as reading the source calls it
# Of the time that numpy.save takes of a core, numpy.load of the same from memory: 0.38 at 4 KiB, 0.20 at 9 MiB.
_READ_BACK = 0.3
_UNDECODED = ("Image.open", "read_file")  # operations that give no picture yet
_WHOLE = 0.05  # that pictures a sample may differ from a whole number by
_BITS = re.compile(r"\d+$")
_READ = ("reading", "decoding")  # operations whose results are kept by `decode-cache`, applied from outside
_GIVEN = ("cv2.imread", "numpy.load")  # of these, those that give an array which can be compared with what is kept
_UNSEEN = "how long a batch takes to make was not seen: train longer"
# One thread for OpenCV and OpenMP in each worker, where they crowded the cores: 0.232 to 0.213 s (mmdetection#6867).
_FEWER_THREADS = 0.232 / 0.213


def _hungry(known: Known) -> str | None:
    """Why the loader's pace does not matter, if it does not."""
    needs, workers = known.needs, known.workers
    if workers is None:
        return NO_LOADER
    if needs.starved:
        return None if needs.loader is not None else _UNSEEN
    if workers.always_ready:
        ready = f"{workers.queue_mean:.1f} of at most {workers.most_ahead} batches are ready when one is wanted"
        return f"{ready}: none is made too late"
    waits = f"the loop waits {seconds(needs.wait)} of a step of {seconds(needs.step)} for batches to be made"
    return f"{waits}: nothing to win there"


def _count(known: Known) -> int:
    """As many as the loop needs to wait no longer, as there are cores for, and as an epoch has batches for."""
    loader = known.needs.loader
    assert loader is not None
    cores = max(int(known.needs.cores or 1), 1)
    wanted = -(-loader.work.high // max(known.needs.loop, 1e-6))
    batches = known.workers.batches_per_epoch if known.workers is not None else None
    return max(min(int(wanted) + 1, cores, batches or cores), 1)


def _workers(known: Known) -> Estimate | str:
    needs, loader = known.needs, known.needs.loader
    reason = _hungry(known)
    if reason is not None or loader is None:
        return reason or NO_LOADER
    if needs.cores is None:
        return "how many cores there are for workers is not known"
    count = _count(known)
    if count <= loader.workers:
        return f"the cores are taken: {loader.workers} workers and the loop on {needs.cores:g}"
    predicted = known.gain_of_data(Change(workers=count))
    if predicted.high <= CLAIMED:
        return f"{seconds(loader.work.likely)} of work a batch, and no core free for it beside the loop"
    return predicted


def _of_workers(known: Known, count: Value) -> Change | str:
    if known.needs.loader is None:
        return NO_LOADER
    if known.needs.cores is None:
        return "how many cores there are for workers is not known"
    if count is None or (isinstance(count, int) and count > 0):
        return Change(workers=count or _count(known))
    return "without workers, nothing is foretold"


def _prefetch(known: Known) -> Estimate | str:
    workers = known.workers
    reason = _hungry(known)
    if reason is not None or workers is None:
        return reason or NO_LOADER
    if not workers.count:
        return "without workers nothing is made ahead"
    if workers.busy_share is None or workers.busy_share > _SATURATED:
        busy = "not known to have time left" if workers.busy_share is None else f"{workers.busy_share:.0%} busy"
        return f"the workers are {busy}: a longer queue makes no batch sooner"
    return _unevenness(known)


def _twice_as_far(known: Known) -> int:
    """Batches ahead of each worker."""
    now = known.workers.prefetch if known.workers is not None else None
    return max(_FURTHER, 2 * (now or 0))


def _unevenness(known: Known) -> Estimate:
    """Workers that have time left, and a loop that waits all the same: they could be busy all the time, no more."""
    assert known.workers is not None
    most = min(bound(known.needs, without("data_wait")), 1 / (known.workers.busy_share or 1.0))
    return Estimate(value=most**0.5, low=1.0, high=most, n=known.needs.n)


def _in_order(known: Known) -> Estimate | str:
    workers = known.workers
    if workers is not None and workers.count < 2:
        return "with fewer than two workers nothing overtakes"
    return _prefetch(known)


def _persistent(known: Known) -> Estimate | str:
    if known.needs.loader is None or not known.needs.loader.workers:
        return "there are no workers that could be kept"
    if known.setting("persistent_workers") is True:
        return "the workers are kept between epochs already"
    gap = known.needs.host.get("epoch_gap", 0.0)
    if known.epochs < 2 or not gap:
        return f"{seconds(gap)} of a step lie between epochs, of {known.epochs}: workers are started once"
    return _from_to(_with_workers_kept(known), known.gain_of_data(without("epoch_gap")))


def _read_on(known: Known) -> Estimate | str:
    """Sure is what keeping them gains: whether there are cores for them beside an evaluation is not known."""
    if known.needs.loader is None or not known.needs.loader.workers:
        return "there are no workers that could go on"
    between = sum(known.needs.host.get(phase, 0.0) for phase in BETWEEN)
    if known.epochs < 2 or not between:
        return f"{seconds(between)} of a step lie between epochs, of {known.epochs}: nothing to go on with"
    return _from_to(_with_workers_kept(known), known.gain_of_data(Change(phases={"epoch_gap": 0.0}, reads_on=True)))


def _with_workers_kept(known: Known) -> Estimate:
    """A pass still begins with a batch to be made; where they are kept already, nothing changes."""
    gap, loader = known.needs.host.get("epoch_gap", 0.0), known.needs.loader
    first = loader.work.likely * known.needs.passes if loader is not None else 0.0
    is_new = gap and known.setting("persistent_workers") is not True
    return known.gain_of_data(Change(phases={"epoch_gap": min(first / gap, 1.0) if is_new else 1.0}))


def _from_to(sure: Estimate, most: Estimate) -> Estimate:
    """At least the one, at most the other, likely in between."""
    return Estimate(value=(sure.value * most.value) ** 0.5, low=sure.low, high=most.high, n=most.n)


def _context(known: Known) -> Estimate | str:
    return "how workers are started changes how long their start takes, not how fast they are"


def _worker_threads(known: Known) -> Estimate | str:
    if "oversubscribed" not in known.shares:
        return "threads are not seen to push each other aside"
    workers = known.workers
    if workers is None or not workers.count or (workers.threads or 0) < 2:
        return "no worker is seen to use threads of its libraries"
    if not workers.at_work:
        return f"the workers are {workers.busy_share:.0%} busy: it is not they who crowd the cores"
    most = bound(known.needs, without("data_wait"))
    return Estimate(value=min(_FEWER_THREADS, most), low=1.0, high=most, n=known.needs.n)


def _decode_cache(known: Known) -> Estimate | str:
    reason = _hungry(known)
    if reason is not None or known.workers is None:
        return reason or NO_LOADER
    where, function = known.workers.where, known.workers.heaviest
    if function is None or not where:
        return "which lines of the dataset take the time was not seen"
    # A sample can be kept, a batch cannot: which samples it has changes with each epoch.
    kept = known.workers.dataset_share
    most = 1.0 if kept is None else kept
    likely = _of_reading(known.workers) or function.share
    spared = (max(sum(line.share for line in where), likely), likely, min(where[0].share / 2, likely))
    return known.gain_of_data(Change(loader=Range(*(1 - min(part, most) for part in spared))))


def _cache_hit(known: Known) -> Estimate | str:
    """Samples are read back instead of made: that takes no longer than saving them does now."""
    habit = known.habit(_NEVER_READ)
    if habit is None or habit.line_share is None:
        return "no cache is seen to be written and never read"
    reason = _hungry(known)
    if reason is not None or known.workers is None:
        return reason or NO_LOADER
    kept = known.workers.dataset_share
    spared = min(habit.share, 1.0 if kept is None else kept)
    left = (1 - spared + part * habit.line_share for part in (0.0, _READ_BACK, 1.0))
    return known.gain_of_data(Change(loader=Range(*(min(part, 1.0) for part in left))))


def _kept_bytes(known: Known) -> int | None:
    """What all pictures of an epoch take, decoded; None where their number or their size is not known.

    A sample of so many and a half pictures takes them from other samples at random: how many there are is not known.
    """
    samples, workers = known.samples_per_epoch, known.workers
    operations = workers.operations if workers is not None else []
    reads = [op for op in operations if op.kind in _READ and not op.name.endswith(_UNDECODED)]
    reads += _resized_at_once(operations) if reads else []
    sizes = [_bytes_of(op) for op in reads]
    if samples is None or not reads or None in sizes:
        return None
    if any(abs(op.calls - round(op.calls)) > _WHOLE or not round(op.calls) for op in reads):
        return None
    return round(samples * sum(round(op.calls) * (size or 0) for op, size in zip(reads, sizes, strict=True)))


def _bytes_of(operation: Operation) -> int | None:
    """Of one result; a type's name ends in its bits."""
    bits = _BITS.search(operation.dtype or "")
    return math.prod(operation.result) * int(bits[0]) // 8 if operation.result and bits else None


def _of_reading(workers: Workers) -> float:
    """Of making samples, what passes in functions that read files: that is likely the same every time.

    What others do to a sample may be random. 0 where no file was seen to be read.
    """
    reads = [op for op in workers.operations if op.kind in _READ]
    functions = {(op.where.file, op.where.function) for op in reads if op.where is not None}
    inside = sum(line.share for line in workers.where if (line.file, line.function) in functions)
    return max(inside, sum(op.share for op in reads))


def _decode_cache_applied(known: Known) -> Estimate | str:
    """From outside what is read from files can be kept, and pictures that are resized as they were read.

    Not what else the dataset makes of them. Both are still copied.
    """
    reason, made = _hungry(known), _with_files_kept(known, None)
    if reason is not None or isinstance(made, str):
        return reason or str(made)
    return known.gain_of_data(made)


def _with_files_kept(known: Known, _: Value) -> Change | str:
    if known.workers is None:
        return NO_LOADER
    read = sum(op.share for op in known.workers.operations if op.kind in _READ)
    if not read:
        return "no file was seen to be read by cv2.imread, PIL or numpy.load"
    kept = min(read + sum(op.share for op in _resized_at_once(known.workers.operations)), 1.0)
    return Change(loader=Range(1 - kept, 1 - 0.9 * kept, 1 - 0.7 * read))


def _resized_at_once(operations: list[Operation]) -> list[Operation]:
    """OpenCV's resizing of what likely is as it was read: in the same function, as often, and nothing beside it."""
    reads = [op for op in operations if op.name in _GIVEN]
    others = [op for op in operations if op.kind not in (*_READ, "resizing")]
    return [
        op
        for op in operations
        if op.name == "cv2.resize"
        and any(_are_beside(op, read) for read in reads)
        and not any(_are_beside(op, other) for other in others)
    ]


def _are_beside(one: Operation, other: Operation) -> bool:
    if one.where is None or other.where is None or abs(one.calls - other.calls) > _WHOLE:
        return False
    return (one.where.file, one.where.function) == (other.where.file, other.where.function)


FIXES = (
    Fix(
        code="workers",
        summary="more processes make batches beside the loop",
        risk="order",
        effort="a flag",
        addresses=("input-bound",),
        setting="num_workers",
        predict=_workers,
        change=_of_workers,
        value=_count,
        takes=values.whole(0, _MOST),
        popular=True,
    ),
    Fix(
        code="prefetch",
        summary="each worker may be further ahead",
        risk="exact",
        effort="a flag",
        addresses=("input-bound",),
        setting="prefetch_factor",
        predict=_prefetch,
        value=_twice_as_far,
        takes=values.whole(1, _MOST, default=_FURTHER),
        popular=True,
    ),
    Fix(
        code="persistent",
        summary="workers are kept from one epoch to the next",
        risk="order",
        effort="a flag",
        addresses=("epoch-gap",),
        setting="persistent_workers",
        predict=_persistent,
        takes=values.SWITCH_ON,
    ),
    Fix(
        code="read-on",
        summary="workers are kept and make the next epoch's first batches while the loop evaluates and saves",
        risk="order",
        effort="a few lines",
        addresses=("epoch-gap", "input-bound"),
        predict=_read_on,
        takes=values.ONLY_ON,
    ),
    Fix(
        code="worker-threads",
        summary="one thread for each worker's libraries",
        risk="rounding",
        effort="a few lines",
        addresses=("oversubscribed", "input-bound"),
        predict=_worker_threads,
        value=lambda known: 1,
        takes=values.whole(1, _MOST, default=1),
    ),
    Fix(
        code="in-order",
        summary="batches are taken as they are ready, not in the order they were asked for",
        risk="order",
        effort="a flag",
        addresses=("input-bound",),
        predict=_in_order,
        value=lambda known: False,
        takes=values.SWITCH_OFF,
    ),
    Fix(
        code="context",
        summary="workers are started in another way: forked, or afresh",
        risk="exact",
        proviso="where the dataset does not rely on what it inherits",
        effort="a flag",
        addresses=("epoch-gap",),
        predict=_context,
        takes=values.one_of("fork", "spawn", "forkserver"),
    ),
    Fix(
        code="decode-cache",
        summary="what a sample needs every time alike is made once and kept, on disk or before the workers start",
        risk="exact",
        proviso="where samples are not random, from the second epoch on",
        effort="a few lines",
        addresses=("input-bound",),
        predict=_decode_cache,
        predict_applied=_decode_cache_applied,
        change=_with_files_kept,
        needs_memory=True,
        memory=_kept_bytes,
        takes=values.one_of("ram", "disk", default="ram"),
    ),
    Fix(
        code="cache-hit",
        summary="samples are taken from the cache that the program writes and never reads",
        risk="exact",
        proviso="from the second epoch on",
        effort="a flag",
        addresses=("input-bound",),
        predict=_cache_hit,
        habit=_NEVER_READ,
    ),
)
