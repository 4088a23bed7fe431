"""What is known of a case: its faults, and what removing each was measured to gain (truth.toml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

from floorit.errors import TruthError
from floorit.stats import Estimate

NAME = "truth.toml"
# What stands below this line was measured; above it, the author of the case wrote.
MARKER = "# measured: written by cases/measure.py; edit nothing below"
Scale = Literal["cpu", "gpu"]
SCALES: tuple[Scale, ...] = ("cpu", "gpu")
_VENDORS = ("nvidia", "amd", "intel")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misspelt key is an error, not a fact lost."""


class Fault(_Strict, frozen=True, kw_only=True):
    """One thing that is wrong with a case, at one place."""

    name: str  # of its switch: --fault-free NAME
    file: str  # relative to the case's folder
    line: int
    text: str  # stands on that line
    summary: str
    finding: str  # code under which a report should name it
    phases: list[str]  # of the ledger, that shrink without it
    results: Literal["same", "rounding", "changed"]  # what removing it may do to the losses
    why: str | None = None  # they are not the same
    fix: str | None = None  # code of the fix that takes it away; None: its lines must be written anew
    scales: tuple[Scale, ...] = SCALES  # at which it costs anything
    regime: str | None = None  # in which alone it costs anything
    gain: Literal["step", "throughput", "memory"] = (
        "step"  # of removing it: a shorter step, more samples a second, room
    )


class Gain(_Strict, frozen=True, kw_only=True):
    """What one change gains. Seconds are as shipped minus without, for the samples of one step as shipped."""

    speedup: Estimate  # in samples a second, by the program's own timer
    saved: Estimate  # by the program's own timer
    ledger_saved: Estimate  # by the report's mean step
    agrees: bool | None = None  # the two, within a tenth; None: too small a gain to ask
    on_named: float | None = None  # share of what the ledger saved that lies on the phases named
    phases: dict[str, float]  # what each phase shrinks by
    memory_saved: float | None = None  # bytes at the peak on the GPU, where the program tells
    date: str | None = None  # None: as the table it stands in
    command: str | None = None


class Measured(_Strict, frozen=True, kw_only=True):
    """A case, measured on one machine."""

    date: str
    command: str
    machine: str
    torch: str
    scale: Scale
    regime: str | None = None  # None: as shipped
    rounds: int
    step_seconds: Estimate  # as shipped, by the program's own timer
    ledger_seconds: Estimate  # as shipped, the report's mean step
    verdicts: dict[str, int]  # as shipped: how many runs were given each
    faults: dict[str, Gain] = {}
    all_off: Gain | None = None


class Regime(_Strict, frozen=True, kw_only=True):
    """The same program with other settings, where something else is what costs."""

    options: list[str]  # for train.py
    verdict: dict[Scale, str]
    verdict_next: dict[Scale, str] | None = None


class Truth(_Strict, frozen=True, kw_only=True):
    """All that is known of a case."""

    case: str
    seed: str  # the write-up it comes from
    complaint: str
    verdict: dict[Scale, str]  # the code expected first
    verdict_next: dict[Scale, str] | None = None  # and the one after it, where one of both is a switch left on
    data_sha256: str | None = None  # of the files of the CPU scale
    regimes: dict[str, Regime] = msgspec.field(name="regime", default_factory=dict)
    faults: list[Fault] = msgspec.field(name="fault")
    measured: dict[str, Measured] = {}

    def at(self, scale: Scale, regime: str | None = None) -> list[Fault]:
        """The faults that cost something at this scale, as shipped or in another regime."""
        return [fault for fault in self.faults if scale in fault.scales and fault.regime in (None, regime)]

    def expected(self, scale: Scale, regime: str | None = None) -> list[str]:
        """The codes of the first findings; of a switch left on and a cost, that which costs more there comes first."""
        of = self if regime is None else self.regimes[regime]
        return [of.verdict[scale], *([of.verdict_next[scale]] if of.verdict_next else [])]

    def measured_on(self, key: str, scale: Scale) -> tuple[str, Measured] | None:
        """What was measured on such a device, else on any other at this scale, as shipped; with that device's key."""
        if key in self.measured:
            return key, self.measured[key]
        found = ((name, m) for name, m in self.measured.items() if m.scale == scale and m.regime is None)
        return next(found, None)


def load(folder: Path) -> Truth:
    """Read a case's truth."""
    try:
        return msgspec.toml.decode((folder / NAME).read_bytes(), type=Truth)
    except FileNotFoundError:
        raise TruthError(f"{folder} is no case: it has no {NAME}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise TruthError(f"{folder / NAME} cannot be read: {error}") from None


def device_key(gpu: str | None, scale: Scale, regime: str | None = None) -> str:
    """A short name for what a case was measured on: cpu, or the GPU's model; then scale and regime if not the usual."""
    device = [word for word in re.split(r"[^a-z0-9]+", gpu.lower()) if word not in ("", *_VENDORS)] if gpu else ["cpu"]
    unusual = [f"{scale}-scale"] if scale != ("gpu" if gpu else "cpu") else []
    return "-".join([*device, *unusual, *([regime] if regime else [])])
