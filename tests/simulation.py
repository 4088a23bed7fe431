"""A training loop played event by event: workers, host and GPU, each with a clock of its own.

It knows nothing of the model that it is there to check, and tells what a report would: the ledger, what the workers
took, and the GPU's busy and idle time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from floorit.analyse.gpu import Gpu, Idle
from floorit.analyse.input import Workers
from floorit.analyse.ledger import HOST_AHEAD, Entry
from floorit.analyse.needs import Needs, find
from floorit.stats import Estimate

CHUNKS = 20  # pieces in which a phase gives the GPU its work
QUEUE = 3 * CHUNKS  # pieces that the GPU may be behind; then the host waits where it is
WAKING = 1e-5  # seconds until the host goes on after the GPU is done
_CAUSES = {
    "data_wait": "data_wait",
    "sync": "sync",
    "other": "other",
    "logging": "other",
    "h2d": "h2d",
    "eval": "other",
}


@dataclass(frozen=True)
class Program:
    """Seconds of one step. `gpu` is the GPU's work by the phase that issues it; None: there is no GPU."""

    host: dict[str, float]
    gpu: dict[str, float] | None = None
    batch: float = 0.0  # to make one
    workers: int = 0
    prefetch: int = 2
    syncs: int = 0  # blocking calls a step: the last at its end, the others inside of the forward pass
    draws_seconds: float = 0.0  # of the program's own, at the end of a step
    draws_every: int = 0  # steps; 0: never
    eval_seconds: float = 0.0
    eval_every: int = 0  # steps; 0: never
    epoch: int = 0  # steps of a pass over the data; 0: all are one
    reads_on: bool = False  # workers begin with the next pass as soon as all of one has been asked for
    steps: int = 400
    cores: int = 64

    def but(self, **changes: object) -> Program:
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_phase(self, phase: str, factor: float) -> Program:
        return self.but(host={**self.host, phase: self.host[phase] * factor})


@dataclass
class _Run:
    program: Program
    now: float = 0.0
    gpu_free: float = 0.0
    gpu_busy: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    device: dict[str, float] = field(default_factory=dict)
    idle: dict[str, dict[str, float]] = field(default_factory=dict)  # by cause, and by the host's phase
    segments: list[tuple[float, float, str]] = field(default_factory=list)
    queue: deque[float] = field(default_factory=deque)

    def pass_time(self, phase: str, until: float) -> None:
        if until > self.now:
            self.spent[phase] = self.spent.get(phase, 0.0) + until - self.now
            self.segments.append((self.now, until, phase))
            self.now = until

    def issue(self, phase: str, work: float) -> None:
        if len(self.queue) == QUEUE:
            self.pass_time(phase, self.queue.popleft())
        if self.now > self.gpu_free:
            self._book_gap(self.gpu_free, self.now)
        self.gpu_free = max(self.gpu_free, self.now) + work
        self.gpu_busy += work
        self.queue.append(self.gpu_free)

    def _book_gap(self, begin: float, end: float) -> None:
        inside = [s for s in self.segments if s[1] > begin and s[0] < end]
        blocked = bool(inside) and inside[0][2] == "sync"
        for start, stop, phase in inside:
            cause = _CAUSES.get(phase, "sync" if blocked else "launch")
            phases = self.idle.setdefault(cause, {})
            phases[phase] = phases.get(phase, 0.0) + min(stop, end) - max(start, begin)
        self.segments = self.segments[-2 * CHUNKS :]

    def sync(self) -> None:
        if self.gpu_free > self.now:
            self.pass_time("sync", self.gpu_free + WAKING)

    def step(self) -> None:
        inner = self.program.syncs - 1
        for phase, seconds in self.program.host.items():
            border = max(self.now, self.gpu_free)
            for chunk in range(CHUNKS):
                self.pass_time(phase, self.now + seconds / CHUNKS)
                if self.program.gpu is not None and phase in self.program.gpu:
                    self.issue(phase, self.program.gpu[phase] / CHUNKS)
                if phase == "forward" and inner > 0 and chunk % max(CHUNKS // inner, 1) == 0:
                    self.sync()
            passed = max(self.now, self.gpu_free) - border  # on the GPU's clock
            self.device[phase] = self.device.get(phase, 0.0) + passed
        if self.program.syncs:
            self.sync()


class _Batches:
    """Workers take turns, and are as far ahead as they may be."""

    def __init__(self, program: Program, now: float, count: int) -> None:
        self._program, self._left = program, count
        self._free = [now] * program.workers
        self._ready: list[float] = []
        self._turn = 0
        self._has_begun = False
        for _ in range(program.workers * program.prefetch):
            self._ask(now)

    def _ask(self, now: float) -> None:
        if self._left:
            self._left -= 1
            worker = self._turn % self._program.workers
            self._turn += 1
            self._free[worker] = max(self._free[worker], now) + self._program.batch
            self._ready.append(self._free[worker])

    def take(self, run: _Run) -> None:
        """The first of a pass is what lies between passes."""
        phase, self._has_begun = "data_wait" if self._has_begun else "epoch_gap", True
        run.pass_time(phase, self._ready.pop(0))
        self._ask(run.now)


def play(program: Program) -> _Run:
    run, batches = _Run(program), None
    length = program.steps if program.reads_on else program.epoch or program.steps
    for step in range(program.steps):
        if program.workers:
            if step % length == 0:
                batches = _Batches(program, run.now, length)
            assert batches is not None
            batches.take(run)
        else:
            run.pass_time("data_wait", run.now + program.batch)
        run.step()
        if program.draws_every and (step + 1) % program.draws_every == 0:
            run.pass_time("other", run.now + program.draws_seconds)
        if program.eval_every and (step + 1) % program.eval_every == 0:
            run.pass_time("eval", run.now + program.eval_seconds)
    return run


def seconds(program: Program) -> float:
    """Of a step."""
    return play(program).now / program.steps


def _bursts(program: Program, mean: float) -> float:
    """A step of what is drawn now and then, beyond two steps without."""
    if not program.draws_every:
        return 0.0
    usual = mean - program.draws_seconds / program.draws_every
    return max(program.draws_seconds - HOST_AHEAD * usual, 0.0) / program.draws_every


def needs(program: Program, window: bool = True, **loader: Any) -> Needs:
    """What a report of the program says, with more known of its loader."""
    run = play(program)
    mean = run.now / program.steps
    steps = program.steps
    device = {phase: s / steps for phase, s in run.device.items()} if program.gpu is not None else {}
    ledger = [
        Entry(
            phase=phase,
            seconds=s / steps,
            share=s / run.now,
            gpu_seconds=device.get(phase),
            where=[],
            bursts=_bursts(program, mean) if phase == "other" else 0.0,
        )
        for phase, s in run.spent.items()
    ]
    within = run.now - run.spent.get("eval", 0.0)
    lost = max(within - run.gpu_busy, 0.0)
    idle = {cause: sum(phases.values()) for cause, phases in run.idle.items()}
    total = sum(idle.values()) or 1.0
    gpu = Gpu(
        steps=10,
        step_seconds=within / steps,
        busy_share=run.gpu_busy / within,
        idle=[
            Idle(
                cause=cause,
                share=idle[cause] / total * lost / within,
                seconds=0.0,
                host="",
                where=[],
                phases={phase: s / (idle[cause] or 1.0) for phase, s in phases.items()},
            )
            for cause, phases in run.idle.items()
        ],
    )
    one = Estimate(value=mean, low=mean, high=mean, n=steps)
    return find(
        ledger=ledger,
        step=mean,
        median=one,
        steps=steps,
        batch=1.0,
        workers=msgspec.structs.replace(workers(program, mean), **loader),
        gpu=gpu if program.gpu is not None and window else None,
        cores=float(program.cores),
        threads=1,
        epochs=steps // program.epoch if program.epoch else 1,
        evals=steps // program.eval_every if program.eval_every else 0,
    )


def workers(program: Program, step: float) -> Workers:
    a_batch = Estimate(value=program.batch, low=program.batch, high=program.batch, n=program.steps)
    return Workers(
        count=program.workers,
        busy_share=min(program.batch / program.workers / step, 1.0) if program.workers else None,
        sample_seconds=a_batch,
        fetch_seconds=program.batch,
        collate_seconds=None,
        send_seconds=0.0,
        receive_seconds=0.0,
        queue_mean=None,
        queue_empty_share=None,
        prefetch=program.prefetch if program.workers else None,
        pinned=False,
        where=[],
    )
