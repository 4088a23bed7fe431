"""What a fix is, and what it is told of a run before it says what it would gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from floorit.analyse.footprint import Memory
from floorit.analyse.gpu import Gpu
from floorit.analyse.habits import Habit
from floorit.analyse.input import Workers
from floorit.analyse.ledger import Entry
from floorit.analyse.needs import Needs, Range
from floorit.analyse.settings import Setting
from floorit.analyse.stepmodel import Change, gain, together
from floorit.analyse.syncs import SyncPoint
from floorit.declared import Control
from floorit.fixes.values import Value, Values
from floorit.stats import Estimate

Risk = Literal["exact", "rounding", "order", "training"]
Effort = Literal["a flag", "a few lines", "a rewrite"]

CLAIMED = 1.02  # no speed-up under it is claimed (DESIGN section 6)
NO_GPU = "the program does not use a GPU"
UNSEEN_GPU = "how long the GPU works in a step was not seen"
UNANSWERED = (NO_GPU, UNSEEN_GPU)  # how reasons begin by which a fix is not advised against
NO_SETTING = "no setting of the program is seen for it: only the program itself decides that"
NO_LOADER = "there is no DataLoader of torch's that it would change"
_OF_DATA = {"input-bound", "epoch-gap", "oversubscribed"}  # findings about the data path alone
# What a cost that is only too frequent may take of a step, once it is rarer.
_SPARED = 0.05


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a report that predictions rest on."""

    needs: Needs
    ledger: list[Entry] = []
    workers: Workers | None = None
    gpu: Gpu | None = None
    syncs: list[SyncPoint] = []
    settings: list[Setting] = []
    shares: dict[str, float] = {}  # of the step, by the finding that names it
    epochs: int = 1
    ranks: int = 1
    gpu_memory: int | None = None  # bytes that the GPU has
    memory: Memory | None = None  # what it is for at its peak
    framework: str | None = None  # whose loop it trains in, of those that fixes reach into
    ungraded: bool = False  # whether what the model computes without gradient may be what it is trained on
    habits: list[Habit] = []  # lines that took time, and what reading them says
    controls: dict[str, list[Control]] | None = None  # its own settings for what a fix does; None: they were not read
    samples_per_epoch: float | None = None  # of all ranks; None: it is not known
    backward_beside: float | None = None  # seconds of the backward pass that no part of the model takes
    times: dict[str, float] = {}  # how often the whole training does what a fix makes rarer, where that is known
    without_data: float | None = None  # seconds that no change to the data path can make a step shorter than

    def gain_of_data(self, change: Change) -> Estimate:
        """The speed-up of a change to the data path: no more than if there were none."""
        predicted = gain(self.needs, change)
        if not self.without_data:
            return predicted
        most = max(self.needs.step / self.without_data, 1.0)
        low, value, high = (min(times, most) for times in (predicted.low, predicted.value, predicted.high))
        return Estimate(value=value, low=low, high=high, n=predicted.n)

    @property
    def on_gpu(self) -> bool:
        """Whether the program is seen to use one."""
        return self.needs.gpu is not None or self.gpu is not None

    @property
    def unseen(self) -> str:
        """Why it is not known how long a GPU works in a step; nothing where it is."""
        if self.needs.gpu is not None:
            return ""
        return UNSEEN_GPU if self.on_gpu else NO_GPU

    def setting(self, name: str) -> object:
        """The value in force; None where it is not known."""
        return next((s.actual for s in self.settings if s.name == name), None)

    def habit(self, code: str | None) -> Habit | None:
        """What reading the source says of a line that took time; None where it does not say this."""
        return next((habit for habit in self.habits if habit.code == code), None)

    def controls_of(self, fix: Fix) -> list[Control]:
        """The program's own settings for what a fix does, those first that most of the time is due to."""
        habit = self.habit(fix.habit)
        return habit.controls if habit is not None else (self.controls or {}).get(fix.code, [])

    def share(self, *phases: str) -> float:
        """Of the step, on the host's clock."""
        return sum(self.needs.host.get(phase, 0.0) for phase in phases) / self.needs.step if self.needs.step else 0.0

    def kernels(self, *kinds: str) -> float | None:
        """Of the GPU's work, kernels of these kinds; None where no window has seen them."""
        if self.gpu is None or self.gpu.busy_share is None:
            return None
        return sum(kind.share for kind in self.gpu.kinds if kind.kind in kinds)

    @property
    def memory_used(self) -> float | None:
        """Of the GPU's memory, at the peak."""
        peak = self.gpu.memory_peak if self.gpu is not None else None
        return peak / self.gpu_memory if peak is not None and self.gpu_memory else None

    def memory_with(self, code: str) -> int | None:
        """Bytes more at the peak, with a fix at the value that is advised; None: that is not predicted."""
        effects = self.memory.effects if self.memory is not None else []
        return next((effect.bytes for effect in effects if effect.code == code and not effect.is_bound), None)

    def memory_used_with(self, code: str) -> float | None:
        """Of the GPU's memory, at the peak, with a fix."""
        more = self.memory_with(code)
        if more is None or self.memory is None or not self.gpu_memory or self.memory.where != "gpu":
            return None
        return (self.memory.peak + more) / self.gpu_memory


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One change: what it does, what it risks, and what it should gain in a run, or why it does not apply there."""

    code: str
    summary: str
    risk: Risk
    effort: Effort
    proviso: str = ""  # under which the risk is no more than that
    addresses: tuple[str, ...]  # findings that it is an answer to
    predict: Callable[[Known], Estimate | str]
    predict_applied: Callable[[Known], Estimate | str] | None = None  # from outside, where that is not all of it
    # What it changes of a step, whatever limits that now, with a value that somebody asks for (None: as it is advised);
    # or why nothing. None where that is not one change.
    change: Callable[[Known, Value], Change | str] | None = None
    predict_with_room: Callable[[Known], Estimate | str] | None = None  # where others free memory that it takes
    value: Callable[[Known], Value] | None = None  # to set it to, where there is a choice
    setting: str | None = None  # of the report, that it changes
    saves: Callable[[Known], Value] | None = None  # the value that takes less memory; None: none does here
    needs_memory: bool = False  # whether it is to be said where it is not known how much
    memory: Callable[[Known], int | None] | None = None  # bytes more that it takes, where the ledger does not tell
    by_setting: bool = False  # whether it is applied by a setting of the program's own, where no framework has one
    habit: str | None = None  # the code of what reading the source says, which it is the answer to
    takes: Values | None = None  # what it can be applied with from outside; None: it can only be advised
    popular: bool = False  # worth saying that it will not help

    def memory_taken(self, known: Known) -> int | None:
        """Bytes more; None: it is not predicted."""
        return self.memory(known) if self.memory is not None else known.memory_with(self.code)

    def foretell(self, known: Known) -> Estimate | str:
        """What it should gain, applied from outside, or why nothing."""
        if self.by_setting and not known.framework and not self.can_be_turned(known):
            return NO_SETTING
        return (self.predict_applied or self.predict)(known)

    def can_be_turned(self, known: Known) -> bool:
        """Whether the program has a setting of its own for it, of which it is known what it would be."""
        value = self.value(known) if self.value is not None else None
        return any(control.turned(value) is not None for control in known.controls_of(self))


def foretold(change: Callable[[Known, Value], Change | str]) -> Callable[[Known], Estimate | str]:
    """The gain of what is one change, as it is advised."""

    def predict(known: Known) -> Estimate | str:
        made = change(known, None)
        return made if isinstance(made, str) else gain(known.needs, made)

    return predict


def foretell_together(asked: Mapping[Fix, Value], known: Known) -> Estimate | str:
    """What fixes should gain at once, each with a value: the limit moves from one to the next."""
    changes = dict[str, Change]()
    for fix, value in asked.items():
        if fix.by_setting and not known.framework and not fix.can_be_turned(known):
            return f"{fix.code}: {NO_SETTING}"
        made = fix.change(known, value) if fix.change is not None else "what it does beside others is not foretold"
        if isinstance(made, str):
            return f"{fix.code}: {made}"
        changes[fix.code] = made
    whole = together(changes.values())
    if all(set(fix.addresses) <= _OF_DATA for fix in asked):
        return known.gain_of_data(whole)
    return gain(known.needs, whole)


def rarer(share: float) -> int:
    """Every how many times is enough, for a cost that now takes a share of the step to take a twentieth of it."""
    return max(round(share * (1 - _SPARED) / (_SPARED * max(1 - share, _SPARED))), 2)


def of_kernels(share: float | None, faster: Range) -> Range:
    """What is left of the GPU's work where some of it takes these factors; how much is, may not be known."""
    if share is not None:
        return Range(*(1 - share * (1 - left) for left in (faster.low, faster.likely, faster.high)))
    return Range(faster.low, (1 + faster.likely) / 2, 1.0)
