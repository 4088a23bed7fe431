"""All that is said of a search: tune.json is this."""

from __future__ import annotations

import msgspec

from floorit.fixes.fix import Risk
from floorit.stats import Estimate
from floorit.trial.attempt import Terms
from floorit.trial.verdict import Fixed, Outcome
from floorit.tune import candidates, judge
from floorit.tune.candidates import BATCH, Goal
from floorit.tune.sizes import Sizes
from floorit.tune.told import Told

SCHEMA = 1
NAME = "tune.json"
_A_WAY = 1.05  # times its floor: nearer than this, a share of the way says nothing


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants tuned."""

    command: list[str]
    goal: Goal
    allowed: list[Risk]  # besides those of the goal
    batch_arg: str | None = None  # how the program itself is told a size of batches: `--batch-size {}`
    terms: Terms

    @property
    def risks(self) -> tuple[Risk, ...]:
        """What a change may do to results."""
        return (*candidates.GOALS[self.goal], *self.allowed)

    @property
    def wants_size(self) -> bool:
        """Whether a size of batches is to be looked for."""
        return self.goal == "speed" and "training" in self.allowed


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried on top of what."""

    on: list[Fixed]
    outcomes: list[Outcome]
    kept: str | None = None  # the name of the outcome that was
    speed: float = 1.0  # of the program with `on`, in times of that as it is
    sizes: Sizes | None = None  # of batches, where this stage looked for one
    seconds: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """How the program stood in its last run."""

    gap: float | None  # how many times its floor a step takes
    gap_before: float | None  # the same of the program untouched
    only_data: bool = False  # whether nothing but the data path is taken away in that floor
    finding: str | None  # what holds it there
    with_all: bool  # whether that run had all that was kept


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The whole training, from its first line to its last, as it is configured."""

    before: float  # seconds
    after: float
    joules_before: float | None = None  # of the GPUs; None where their power was not measured
    joules_after: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All that is said of a search."""

    schema: int = SCHEMA
    command: list[str]
    goal: Goal
    stages: list[Stage]
    stack: list[Fixed]
    proof: Outcome | None  # of all that was kept, against the program untouched
    does_not_run: bool = False  # as it is, for want of memory
    left: Left | None
    job: Job | None  # None where how long it is to train is not known
    in_source: list[Told]  # what of it the patch does, and what is to be done by hand
    advice: list[str] = []  # what to do where it came to nothing, or to less than it could
    stopped: str  # why it ended
    interrupted: bool
    seconds: float  # of all runs
    folder: str

    @property
    def is_proven(self) -> bool:
        """Whether all that was kept is what was sought, against the untouched program."""
        return self.proof is not None and judge.is_kept(self.goal, self.proof, speed=1.0)

    @property
    def closed(self) -> Estimate | None:
        """The share of the way from the untouched program's step to its floor that is gone, by the proof; over 1 where
        what was kept lowers the floor itself. None where there was hardly a way, or where a step is another one now.
        """
        before = self.left.gap_before if self.left is not None else None
        if not self.is_proven or before is None or before < _A_WAY or any(fix.code == BATCH for fix in self.stack):
            return None
        gain = self.proof.speedup if self.proof is not None else None
        if gain is None:
            return None
        value, low, high = ((1 - 1 / speed) / (1 - 1 / before) for speed in (gain.value, gain.low, gain.high))
        return Estimate(value=value, low=low, high=high, n=gain.n)


def to_json(result: Result) -> bytes:
    """tune.json."""
    return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
