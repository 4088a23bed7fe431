"""The report itself: its JSON is report.json (DESIGN section 9)."""

from __future__ import annotations

import msgspec

from floorit.analyse.floor import Floor
from floorit.analyse.footprint import Memory
from floorit.analyse.gpu import Gpu
from floorit.analyse.habits import Habit
from floorit.analyse.input import Workers
from floorit.analyse.job import Job
from floorit.analyse.ledger import Entry
from floorit.analyse.machine import Machine
from floorit.analyse.memory import OutOfMemory
from floorit.analyse.named import Named
from floorit.analyse.overrides import Override
from floorit.analyse.parts import Part
from floorit.analyse.ranks import LateRank
from floorit.analyse.settings import Setting
from floorit.analyse.slowdown import SlowDown
from floorit.analyse.syncs import SyncPoint
from floorit.declared import Control
from floorit.diagnose import Finding
from floorit.hardware import Environment
from floorit.stats import Estimate

SCHEMA = 1


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """The user's command and how it ended."""

    command: list[str]
    exit_code: int | None  # None: it was still running, or floorit itself was killed
    seconds: float | None
    cwd: str | None = None  # where it was started


# What is missing where the physical limit is not known.
PHYSICAL = ("floor: the physical limit", "gpu.mfu")
NO_CUDA = "the program did not use CUDA"  # why there is nothing of a GPU


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How much was recorded."""

    steps: int
    warmup_steps: int
    ranks: int
    samples_per_step: float | None
    samples_per_second: Estimate | None
    steady: bool
    optimizer_steps: int
    accumulation: float
    border: str  # what an iteration lies between
    epochs: int
    eval_passes: int
    compiled_steps: list[int]  # iterations in which torch.compile ran
    warmup_seconds: float
    stack_samples: int
    counted_steps: int = 0  # of all steps, those that were counted and timed, not looked into: see record/naps.py
    stopped: bool = False  # whether --steps ended it
    framework: str | None = None  # whose loop it trains in, of those that fixes reach into
    ungraded: bool = False  # whether what the model computes without gradient may be what it is trained on


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a step takes: the mean with all that lies between steps, and the median step itself."""

    mean: float
    seconds: Estimate
    p95: float


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's own figures."""

    rank: int
    step: StepFacts
    ledger: list[Entry]
    waits_for: int | None = None  # the rank that is late
    waits_seconds: Estimate | None = None  # a step, for whichever is the slowest; None: it is not known


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be measured, and why."""

    what: str
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    schema: int = SCHEMA
    program: Program
    environment: Environment
    run: RunFacts | None
    step: StepFacts | None
    slowdown: SlowDown | None = None  # where later steps take longer
    job: Job | None = None
    ledger: list[Entry]
    workers: Workers | None
    gpu: Gpu | None
    parts: list[Part] = []  # of the model; the last is the rest of its passes
    parts_how: str | None = None  # how their seconds were measured
    memory: Memory | None = None  # what it is for at its peak
    floor: Floor | None
    machine: Machine | None = None
    syncs: list[SyncPoint]
    settings: list[Setting]
    overrides: list[Override] = []  # fixes applied from outside
    spans: list[Named] = []  # stretches that the program has named itself
    habits: list[Habit] = []  # lines that took time, and what reading them says
    controls: dict[str, list[Control]] | None = (
        None  # the program's own settings for what a fix does, by its code; None: its files were not read
    )
    findings: list[Finding]
    out_of_memory: OutOfMemory | None = None
    missing: list[Missing]
    ranks: list[Rank]
    late_rank: LateRank | None = None  # that the others wait for
    record: str  # the folder it was made from
    summary: str  # one sentence


def to_json(report: Report) -> bytes:
    """report.json, for people too."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
