"""What limits the run, with evidence and the place in the source."""

from __future__ import annotations

import msgspec

from floorit.analyse.gpu import Gpu
from floorit.analyse.input import Workers
from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Ledger, Line
from floorit.analyse.needs import Needs
from floorit.analyse.ranks import LateRank
from floorit.analyse.settings import Setting
from floorit.declared import Control
from floorit.events import Process
from floorit.stats import Estimate


class FixAdvice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that should help. Filled by the planner."""

    code: str
    summary: str
    risk: str
    effort: str
    proviso: str = ""  # under which the risk is no more than that
    speedup: Estimate | None  # None: it is not for speed
    value: bool | int | float | str | None = None  # to set it to, where there is a choice
    by_hand: bool = False  # whether nothing from outside can do it in this program
    memory: int | None = None  # bytes more at the peak, where that is predicted; negative: less
    takes_memory: bool = False  # whether it does, where it is not known how much
    controls: list[Control] = []  # the program's own settings for it
    where: Line | None = None  # the line that has to be changed, where no setting of the program is all that it takes
    instead: str = ""  # what to write there
    in_program: Estimate | None = None  # the speed-up where the program does it itself, if that is more


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """Code that no switch makes faster, and the speed-up if it took half its time, or none."""

    where: Line
    share: float | None = None  # of the step; None: of batches that are made beside it
    halved: Estimate
    gone: Estimate
    with_backward: float | None = None  # the most, if its part of the backward pass went too; None: it has no such part
    controls: list[Control] = []  # the program's own settings for how often it runs

    @property
    def most(self) -> float:
        """The speed-up that nothing can exceed."""
        return self.with_backward or self.gone.high


class NotAdvised(msgspec.Struct, frozen=True, kw_only=True):
    """A popular change that would not help, and why."""

    code: str
    reason: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that costs time. `bound` is the speed-up if that cost vanished: nothing can gain more."""

    code: str
    title: str
    share: float | None
    share_is_least: bool = False  # the cost is more, by a part that cannot be told
    of_which: str = ""  # what it is made up of, where that is more than one row of the ledger
    bound: float | None
    evidence: list[str]
    where: list[Line]
    fixes: list[FixAdvice] = []  # the best first
    rewrite: Rewrite | None = None
    not_advised: list[NotAdvised] = []

    @property
    def is_switch(self) -> bool:
        """Whether it is something that helps to find errors, left on."""
        return self.code == "debug-left-on"

    @property
    def is_removable(self) -> bool:
        """Whether it is not the model's own work."""
        return self.code not in ("compute-bound", "healthy")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule may look at."""

    process: Process
    iterations: Iterations
    ledger: Ledger
    workers: Workers | None
    needs: Needs
    gpu: Gpu | None = None
    gpu_memory: int | None = None  # bytes that the GPU has
    settings: list[Setting] = []
    without_data: float | None = None  # seconds of a step without its data path, where that was measured
    batch: float | None = None  # samples in one, of this rank; None where no loader of torch's makes them
    ddp_waits: float | None = None  # seconds of a step that DDP's backward waits for other ranks, where it tells
    late: LateRank | None = None  # the rank that the others wait for
    waits: float | None = None  # the same, by how much shorter this rank's own time is than the slowest's

    @property
    def on_gpu(self) -> bool:
        """Whether the GPU's time is known."""
        return self.needs.gpu is not None


def place_of(facts: Facts, *names: str) -> list[Line]:
    """The program's line that put the first of these settings in force, where it is known."""
    places = {setting.name: setting.set_at for setting in facts.settings}
    known = next((place for name in names if (place := places.get(name)) is not None), None)
    return [Line(file=known.file, line=known.line, function=known.function, share=1.0)] if known is not None else []


def bound_of(share: float) -> float:
    """The speed-up if a share of the step vanished."""
    return 1 / max(1 - share, 1e-3)
