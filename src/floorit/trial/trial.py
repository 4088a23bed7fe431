"""One run of one arm, as it is kept; and two of them, compared over the same steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from floorit.turning import Turned

State = Literal["ran", "failed", "hung", "untrained"]
ENOUGH = 4  # steps that a comparison needs at the least
# Arms whose steps differ in samples by more than this have other batches: they are compared by the sample.
_SAME_BATCH = 0.01


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a fix in the program's process; or of a setting of the program's own that it is."""

    code: str
    value: Any = None
    state: str  # "in force", "not met", "failed"
    reason: str | None = None
    turned: list[Turned] = []  # the settings


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """What a process might have of its GPU, and how it went. Bytes."""

    bytes: int
    total: int  # that the GPU has
    reserved: int | None = None  # by torch's allocator at the most
    retries: int | None = None  # times that the allocator gave back all it had and tried again


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial met on the GPU while its steps were steady."""

    others: float | None  # processes of other programs that computed there, on average; None: the driver does not say
    slowed: dict[str, float]  # why its clock was held down -> share of the time


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A fresh process, run and read."""

    arm: str
    state: State
    seconds: float  # from its start to its end
    exit_code: int | None = None  # as a shell shows it
    reason: str | None = None  # why it is not "ran"
    said: str | None = None  # the file that has all that it said
    last: list[str] = []  # its last lines, where it did not end well
    starts: list[float] = []  # seconds, when each step began
    warmup: int = 0  # steps at the start that are not like the later ones
    samples: float | None = None  # of a step
    losses: list[list[float | None]] = []  # of each rank; None: not a finite number
    memory: int | None = None  # bytes that tensors had on the GPU at the most
    host: int | None = None  # bytes of the host that its processes had at the most
    shared: int | None = None  # bytes more in /dev/shm at the most; others may be in it
    watts: float | None = None  # that the GPU drew while it trained; None: nobody said
    beside: Beside | None = None
    skipped: float | None = None  # share of its steps that a GradScaler did not take; None: it was asked for none
    rare: dict[str, list[float]] = {}  # seconds of each step in phases that need not come in every step, if any
    evaluated: bool = False  # whether it evaluated while it ran
    ran_out: bool = False  # whether it ended for lack of memory
    cap: Cap | None = None  # where its memory was capped
    overrides: list[Override] = []

    @property
    def pace(self) -> float | None:
        """Seconds a step, once they were steady."""
        steady = len(self.starts) - 1 - self.warmup
        return (self.starts[-1] - self.starts[self.warmup]) / steady if self.state == "ran" and steady > 0 else None

    def seldom(self, phase: str) -> float:
        """Seconds a step in one of those phases, once steps were steady."""
        steady = self.rare.get(phase, [])[self.warmup :]
        return sum(steady) / len(steady) if steady else 0.0

    @property
    def startup(self) -> float | None:
        """Seconds that it took longer than its steps would have at that pace."""
        return None if self.pace is None else self.seconds - self.pace * (len(self.starts) - 1)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two trials that ran one soon after the other. Seconds a step, over the same steps of both."""

    a: float
    b: float
    order: str  # "ab" or "ba"
    steps: int  # that were compared

    @property
    def log_ratio(self) -> float:
        """Over zero where `b` is faster."""
        return math.log(self.a / self.b)


def pair(a: Trial, b: Trial, order: str, rarer: Mapping[str, int] = MappingProxyType({})) -> Pair | str:
    """Compared from where both were steady to where the shorter ended, with all that lies between steps; or why not.

    Where their batches differ, by the sample, each over its own steps. A phase that `b` has so many times as rarely is
    counted as that part of what it takes in `a`: in so few steps it may come due once too often, or never.
    """
    if a.samples and b.samples and a.pace and b.pace and abs(b.samples / a.samples - 1) > _SAME_BATCH:
        steps = min(len(trial.starts) - 1 - trial.warmup for trial in (a, b))
        if steps >= ENOUGH:
            return Pair(a=a.pace, b=b.pace * a.samples / b.samples, order=order, steps=steps)
    begin = max(a.warmup, b.warmup)
    end = min(len(a.starts), len(b.starts)) - 1  # the last step may have been cut off
    if end - begin < ENOUGH:
        return f"only {max(end - begin, 0)} steps were steady in both: give it more with --steps"
    seconds = [(trial.starts[end] - trial.starts[begin]) / (end - begin) for trial in (a, b)]
    for phase, times in rarer.items():
        rare = [sum(trial.rare.get(phase, ())[begin:end]) / (end - begin) for trial in (a, b)]
        if rare[0]:
            seconds[1] += rare[0] / times - rare[1]
    return Pair(a=seconds[0], b=seconds[1], order=order, steps=end - begin)
