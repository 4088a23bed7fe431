"""Which stretches of the record are iterations, which evaluation, which the gaps between, and where warm-up ends."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit import replay
from floorit.events import Process, Rows
from floorit.stats import Floats

# Row kinds.
TRAIN, EVAL, BETWEEN = 0, 1, 2

STEPS_PER_BATCH = 4  # more optimizer steps a batch than this: the batch is not the iteration
WARMUP_WINDOW = 5  # iterations that must look like the later ones for warm-up to be over
WARMUP_FACTOR = 1.5  # times the later median: more is warm-up
# On a GPU the host runs ahead until the queue of launches is full: until then its steps are shorter than what the GPU
# needs for one. Steps under the later median over this are such.
AHEAD_FACTOR = 1.5
STEADY_DRIFT = 0.15  # between the medians of the two halves after warm-up: more is not steady

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Iterations(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one process, told apart."""

    border: str  # what an iteration lies between: batches, optimizer steps, backward passes
    kind: Ints  # of each row
    of_row: Ints  # number of the iteration a row belongs to; -1 before the first
    windowed: Bools  # whether a row was slowed down by the kernel window, or belongs to a step that was
    slowed: Bools  # whether an iteration was
    seconds: Floats  # of each iteration, evaluation and gaps left out
    samples: Ints  # of each iteration
    compiled: Bools  # whether torch.compile ran in it
    counted: int = 0  # iterations that were timed as a whole, and not looked into
    optimizer_steps: int
    accumulation: float  # iterations an optimizer step
    epochs: int  # passes over the training data
    eval_passes: int
    warmup: int  # iterations at the start that are not like the later ones
    steady: bool
    eval_iterators: frozenset[int]

    @property
    def count(self) -> int:
        return len(self.seconds)

    @property
    def after_warmup(self) -> Floats:
        """Seconds of the iterations that count: neither warm-up nor slowed down by the kernel window."""
        return self.seconds[self.warmup :][~self.slowed[self.warmup :]]


def find(process: Process, warmup: int | None = None) -> Iterations | None:
    """The iterations of a process, or None if it never trained; `warmup` of them, where the user knows how many."""
    rows = process.rows
    told = rows["opened"] == replay.TOLD
    if not len(rows) or not (int(rows["backwards"].sum()) or told.any()):
        return None
    training, evaluation = _passes(rows)
    steps = int(rows["steps"].astype(np.int64).sum())
    in_pass = np.isin(rows["iterator"], list(training))
    batches = (rows["opened"] == replay.BATCH) & in_pass
    served = np.arange(len(rows))
    if told.any():
        border, ends = "calls of floorit.step", np.append(told[1:], False)
        begins, ended = _between_ends(ends)
    elif batches.any() and steps <= STEPS_PER_BATCH * int(batches.sum()):
        left = _left_early(rows, batches)
        border, begins = "batches", batches & ~left
        ended = (rows["opened"] == replay.EXHAUSTED) | left
        _follow_read_ahead(rows, training, begins, ended, served)
    else:
        border = "optimizer steps" if steps else "backward passes"
        ends = _last_steps(rows["optimizers"]) if steps else rows["backwards"] > 0
        begins, ended = _between_ends(ends)
    kind = _kinds(rows, evaluation, ended)
    of_row = np.cumsum(begins).astype(np.int64) - 1
    of_batch = np.where(served >= 0, of_row[served], -1)
    kind[of_row < 0] = BETWEEN
    return _build(process, border, kind, of_row, of_batch, training, evaluation, warmup)


def _between_ends(ends: Bools) -> tuple[Bools, Bools]:
    """Rows with which an iteration begins, and those after the last one, where rows are known that end one."""
    last = int(np.flatnonzero(ends)[-1])
    begins = np.concatenate([[True], ends[:-1]])
    begins[last + 1 :] = False
    ended: Bools = np.arange(len(ends)) > last  # after the last step nothing trains
    return begins, ended


def _passes(rows: Rows) -> tuple[set[int], set[int]]:
    """Passes over data that train, and passes that evaluate: a forward but never a backward."""
    alive = (rows["opened"] != replay.EXHAUSTED) & (rows["iterator"] > 0)
    idle = _is_idle(rows)
    ahead = [rows["iterator"][first] for first, _ in _rows_of_passes(rows) if idle[first]]
    trains = (alive | np.isin(rows["iterator"], ahead)) & (rows["backwards"] > 0)
    forwards = alive & ((rows["flags"] & (replay.GRAD_FORWARD | replay.NO_GRAD_FORWARD)) > 0)
    training = set(np.unique(rows["iterator"][trains]).tolist())
    evaluation = set(np.unique(rows["iterator"][forwards]).tolist()) - training
    return training, evaluation


def _left_early(rows: Rows, batches: Bools) -> Bools:
    """The last batches of passes, if no model was called with them: the loop was left when it had asked for them."""
    asked = np.flatnonzero(rows["opened"] == replay.BATCH)
    worked = np.add.reduceat(rows["backwards"].astype(np.int64), asked)
    iterators = rows["iterator"][asked]
    last = np.zeros(len(asked), bool)
    last[len(asked) - 1 - np.unique(iterators[::-1], return_index=True)[1]] = True
    left: Bools = np.zeros(len(rows), bool)
    left[asked[last & (worked == 0)]] = True
    left &= batches & (_is_idle(rows) | (rows["flags"] & replay.NAP > 0))
    return left


def _is_idle(rows: Rows) -> Bools:
    """Batches that were asked for and with which no model was called before the next was."""
    called = rows["flags"] & (replay.GRAD_FORWARD | replay.NO_GRAD_FORWARD)
    idle: Bools = (rows["opened"] == replay.BATCH) & (rows["backwards"] == 0) & (called == 0)
    return idle


def _rows_of_passes(rows: Rows) -> list[tuple[int, int]]:
    """The first row of each pass over data, and the last."""
    iterators, first = np.unique(rows["iterator"], return_index=True)
    last = len(rows) - 1 - np.unique(rows["iterator"][::-1], return_index=True)[1]
    return [(int(a), int(b)) for number, a, b in zip(iterators, first, last, strict=True) if number > 0]


def _follow_read_ahead(rows: Rows, training: set[int], begins: Bools, ended: Bools, served: Ints) -> None:
    """Of passes that are read ahead of the work: an iteration is the work on one batch, not what lies between two.

    Some wrappers of loaders have the next batch in hand before they give one out, so the last is worked on when no
    more come; some trainers read all batches of an optimizer step at once. Either begins with batches that nothing is
    done with. `served` says for each batch with which row the iteration begins that works on it; -1: none does.
    """
    idle = _is_idle(rows)
    for first, last in _rows_of_passes(rows):
        if not idle[first] or int(rows["iterator"][first]) not in training:
            continue
        if rows["iterator"][min(first + 1, last)] != rows["iterator"][first]:
            continue  # it evaluates before it works on its first batch
        own = first + np.flatnonzero(rows["iterator"][first : last + 1] == rows["iterator"][first])
        asked, works = own[rows["opened"][own] == replay.BATCH], own[rows["backwards"][own] > 0]
        if len(works) != len(asked) and idle[asked].all():
            continue  # all was read before any work, and there is more of that: a loop over something else
        each = max(round(len(works) / len(asked)), 1)
        ends = works[each - 1 : -1 : each][: len(asked) - 1]
        starts = np.concatenate([[first], own[np.searchsorted(own, ends, side="right")]])
        begins[own], ended[own] = False, (rows["opened"][own] == replay.EXHAUSTED) | (own > works[-1])
        begins[starts], ended[works] = True, False
        served[asked] = -1
        served[asked[: len(starts)]] = starts


def _last_steps(optimizers: NDArray[np.uint32]) -> Bools:
    """Rows with which an iteration ends, where optimizers alone say so.

    Optimizers that take turns share an iteration: it ends before one of them steps a second time. A group of
    optimizers that is seen only once is no turn but one training stage after another.
    """
    stepping = np.flatnonzero(optimizers)
    groups: list[tuple[int, list[int]]] = []  # optimizers, rows
    for row in stepping.tolist():
        bits = int(optimizers[row])
        if groups and not groups[-1][0] & bits:
            groups[-1] = (groups[-1][0] | bits, [*groups[-1][1], row])
        else:
            groups.append((bits, [row]))
    seen = Counter(bits for bits, _ in groups)
    ends = np.zeros(len(optimizers), bool)
    for bits, rows in groups:
        ends[rows if seen[bits] == 1 else rows[-1:]] = True
    return ends


def _optimizer_steps(rows: Rows, of_row: Ints, trains: Bools, count: int) -> int:
    """Steps of all iterations; several optimizers that step in one count once."""
    bits = rows["optimizers"][trains]
    seen = int(np.bitwise_or.reduce(bits))
    stepped = [(bits >> bit & 1) > 0 for bit in range(32) if seen >> bit & 1]
    each = np.ceil(rows["steps"][trains] / np.maximum(sum(mine.astype(np.int64) for mine in stepped), 1))
    most = np.zeros(count)
    for mine in stepped:
        most = np.maximum(most, np.bincount(of_row[trains][mine], weights=each[mine], minlength=count)[:count])
    return int(most.sum())


def _kinds(rows: Rows, evaluation: set[int], ended: Bools) -> Ints:
    kind = np.full(len(rows), TRAIN, np.int64)
    evaluates = np.isin(rows["iterator"], list(evaluation)) & (rows["opened"] == replay.BATCH)
    kind[ended] = BETWEEN
    kind[evaluates] = EVAL
    _leave_evaluation(rows, evaluates, kind)
    return kind


def _leave_evaluation(rows: Rows, evaluates: Bools, kind: Ints) -> None:
    """What follows the last batch of an evaluation whose end nobody tells: loops that are left, loaders without end.

    Of an evaluation of one batch it may be all that is done with it, and nothing else says how much that is.
    """
    for row in np.flatnonzero(rows["opened"] == replay.LEFT).tolist():
        if evaluates[row - 1]:
            has_several = evaluates[row - 2] and rows["iterator"][row - 2] == rows["iterator"][row]
            kind[row] = BETWEEN if has_several else EVAL


def _evaluations(rows: Rows, evaluation: set[int]) -> int:
    """How often the program evaluated: a loader without an end gives batches to all of its evaluations."""
    evaluates = np.isin(rows["iterator"], list(evaluation)) & (rows["opened"] == replay.BATCH)
    goes_on = evaluates[1:] & evaluates[:-1] & (rows["iterator"][1:] == rows["iterator"][:-1])
    return int(evaluates.sum()) - int(goes_on.sum())


def _build(
    process: Process,
    border: str,
    kind: Ints,
    of_row: Ints,
    of_batch: Ints,
    training: set[int],
    evaluation: set[int],
    told_warmup: int | None,
) -> Iterations:
    rows = process.rows
    count = int(of_row[-1]) + 1
    trains = kind == TRAIN
    lengths = rows["end"] - process.starts()
    seconds: Floats = np.bincount(of_row[trains], weights=lengths[trains], minlength=count)[:count].astype(np.float64)
    samples = _samples(rows, of_batch, trains, training if border == "batches" else None, count)
    compiled = np.zeros(count, bool)
    compiled[of_row[trains & ((rows["flags"] & replay.COMPILED) > 0)]] = True
    steps = _optimizer_steps(rows, of_row, of_row >= 0, count)
    slowed = np.zeros(count, bool)
    in_window = (rows["flags"] & replay.WINDOW) > 0
    slowed[of_row[trains & in_window]] = True
    on_gpu = process.memory_peak is not None or bool(len(process.device))
    ahead = seconds < np.median(seconds[count // 2 :]) / AHEAD_FACTOR if on_gpu else np.zeros(count, bool)
    begins = warmup_length(seconds, compiled, ahead) if told_warmup is None else min(told_warmup, count - 1)
    warmup = max(begins, _before_replay(process, of_row, count))
    _extend(slowed, ahead)  # to watch kernels empties the queue of launches
    return Iterations(
        border=border,
        kind=kind,
        of_row=of_row,
        windowed=in_window | (trains & slowed[of_row]),
        slowed=slowed,
        seconds=seconds,
        samples=samples,
        compiled=compiled,
        counted=int((trains & ((rows["flags"] & replay.NAP) > 0)).sum()),
        optimizer_steps=steps,
        accumulation=count / steps if steps and count - steps != 1 else 1.0,  # the last may have been cut off
        epochs=len(training),
        eval_passes=_evaluations(rows, evaluation),
        warmup=warmup,
        steady=is_steady(seconds[warmup:][~slowed[warmup:]]),
        eval_iterators=frozenset(evaluation),
    )


def _samples(rows: Rows, of_batch: Ints, trains: Bools, training: set[int] | None, count: int) -> Ints:
    """Samples of each iteration: of its batches, or where there is no loader, what the model was called with."""
    each = rows["samples"].astype(np.int64)
    if training is not None:
        each = np.where((rows["opened"] == replay.BATCH) & np.isin(rows["iterator"], list(training)), each, 0)
    samples = np.zeros(count, np.int64)
    several_optimizers = bool(np.bitwise_or.reduce(rows["optimizers"]) & ~np.uint32(1))
    gather = np.maximum if training is None and several_optimizers else np.add
    counts = trains & (of_batch >= 0)
    gather.at(samples, of_batch[counts], each[counts])
    return samples


def _before_replay(process: Process, of_row: Ints, count: int) -> int:
    """In a floor run: the iterations whose batches were really fetched, as long as others are left."""
    if process.replays_since is None:
        return 0
    before = int(of_row[process.starts() < process.replays_since].max(initial=-1)) + 1
    return min(before, count - 1)


def _extend(slowed: Bools, ahead: Bools) -> None:
    """Count the iterations right after slowed ones, in which the host runs ahead again, as slowed too."""
    for at in np.flatnonzero(slowed).tolist():
        while at + 1 < len(slowed) and ahead[at + 1]:
            at += 1
            slowed[at] = True


def warmup_length(seconds: Floats, compiled: Bools, ahead: Bools) -> int:
    """How many iterations at the start are unlike the later ones; at most half of all."""
    count = len(seconds)
    if count < 4:
        return 0
    limit = WARMUP_FACTOR * float(np.median(seconds[count // 2 :]))
    most = count // 2
    for start in range(1, most + 1):
        window = slice(start, start + WARMUP_WINDOW)
        is_slow = seconds[start] > limit or np.median(seconds[window]) > limit
        if not is_slow and not compiled[window].any() and ahead[window].mean() < 0.5:
            return start
    return most


def is_steady(seconds: Floats) -> bool:
    """Whether the two halves are alike."""
    if len(seconds) < 8:
        return False
    half = len(seconds) // 2
    first, second = float(np.median(seconds[:half])), float(np.median(seconds[half:]))
    return abs(first - second) <= STEADY_DRIFT * max(first, second)
