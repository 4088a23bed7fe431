"""The steps one by one: what the ledger is the mean of."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from floorit import replay
from floorit.analyse.iterations import EVAL, TRAIN, Bools, Ints, Iterations
from floorit.analyse.ledger import after_training
from floorit.events import Process
from floorit.record import wire
from floorit.stats import Floats

_WARMUP, _WATCHED = 1, 2


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Each step, and apart from it what came between it and the next: evaluation, gaps."""

    step: Ints  # its number, from 0
    is_step: Bools  # else what came after it
    begin: Floats  # seconds, on the record's clock
    phases: Floats  # seconds, by wire.PHASES
    samples: Ints
    iterator: Ints  # number of the pass over data that it belongs to; 0: none
    is_warmup: Bools
    is_watched: Bools  # slowed down by a window
    is_divided: Bools  # timed as a whole, and divided as steps that were looked into

    @property
    def seconds(self) -> Floats:
        """Of all phases together."""
        total: Floats = self.phases.sum(axis=1)
        return total

    @property
    def is_counted(self) -> Bools:
        """Whether it is in the ledger."""
        counted: Bools = ~(self.is_warmup | self.is_watched)
        return counted

    def whole_steps(self) -> Floats:
        """Seconds of each step that counts, with what came after it: their mean is the ledger's."""
        counted = self.is_counted
        steps = np.flatnonzero(counted & self.is_step)
        after = np.flatnonzero(counted & ~self.is_step)
        total: Floats = self.seconds[steps].copy()
        owner = np.maximum(np.searchsorted(steps, after) - 1, 0)  # what follows a watched step goes to one before it
        np.add.at(total, owner, self.seconds[after])
        return total


def find(process: Process, iterations: Iterations) -> Series:
    """The steps of a process that trained."""
    rows, kind, of_row = process.rows, iterations.kind, iterations.of_row
    inside = np.flatnonzero(of_row >= 0)
    trains = (kind == TRAIN).astype(np.int64)
    marks = (of_row < iterations.warmup) * _WARMUP + iterations.windowed * _WATCHED
    keys = (of_row * 2 + (1 - trains)) * 4 + marks
    _, first, group = np.unique(keys[inside], return_index=True, return_inverse=True)
    lead = inside[first]
    summed = np.zeros((len(first), len(wire.PHASES)))
    for phase, spent in _by_phase(process, iterations):
        summed[:, phase] = np.bincount(group, weights=spent[inside])
    is_step = trains[lead] > 0
    divided = np.zeros(len(first), bool)
    np.logical_or.at(divided, group, (rows["flags"][inside] & replay.NAP) > 0)
    return Series(
        step=of_row[lead],
        is_step=is_step,
        begin=process.starts()[lead],
        phases=summed,
        samples=np.where(is_step, iterations.samples[of_row[lead]], 0),
        iterator=rows["iterator"][lead].astype(np.int64),
        is_warmup=(marks[lead] & _WARMUP) > 0,
        is_watched=(marks[lead] & _WATCHED) > 0,
        is_divided=divided & is_step,
    )


def _by_phase(process: Process, iterations: Iterations) -> Iterator[tuple[int, Floats]]:
    """Seconds of each row, one phase after the other: all of them at once would take much memory."""
    rows, evaluates = process.rows, iterations.kind == EVAL
    after = after_training(process, iterations)
    totals = rows["seconds"][evaluates].astype(np.float64).sum(axis=1)
    for phase in range(len(wire.PHASES)):
        spent = rows["seconds"][:, phase].astype(np.float64)
        spent[evaluates] = totals if phase == wire.EVAL else 0.0
        spent[len(spent) - len(after) :] = after[:, phase]
        yield phase, spent
