"""run.json: what was started, where, and how it ended. Written before the program starts and again after."""

from __future__ import annotations

from pathlib import Path

import msgspec

from floorit.analyse.alternatives import Measured
from floorit.analyse.overrides import Override
from floorit.declared import Control, Told
from floorit.errors import RecordError
from floorit.events import Headroom, Rates, Usage
from floorit.hardware import Environment
from floorit.scan.finding import Finding, Paced

NAME = "run.json"
# What else is in a run's folder: the record, and all that belongs to the run without the data path, or of it alone.
RECORD, FLOOR, DRAIN = "record", "floor", "drain"


class FloorRun(msgspec.Struct, frozen=True, kw_only=True):
    """The second run, without the data path: how its writes were kept away, or why there is none."""

    how: str | None = None
    reason: str | None = None
    seconds: float | None = None
    rates: Rates | None = None  # of the device that it computed on
    no_rates: str | None = None  # why they are not known


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """What so many workers gave by themselves, in each rank."""

    workers: int
    batches: int = 0  # of all ranks
    seconds: float = 0.0
    reason: str | None = None  # why there are none


class Draining(msgspec.Struct, frozen=True, kw_only=True):
    """The run of the training loader alone."""

    reason: str | None = None  # why there is none
    rates: list[Drained] = []


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """One `floorit run`."""

    version: int = 1
    command: list[str]
    cwd: str
    started: float  # seconds since the epoch
    environment: Environment
    window: bool = True  # whether the kernel window was wished for
    fixes: dict[str, bool | int | float | str | None] = {}  # code -> value, applied as overrides
    turned: list[Override] = []  # fixes that are settings of the program's own
    warmup: int | None = None  # steps at the start that the user wants left out; None: found out
    stopped: bool = False  # whether it was ended early, as --steps wishes
    exit_code: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None  # that all of its processes used of the cores
    floor: FloorRun | None = None  # None: it was not wished for
    drained: Draining | None = None  # the same
    headroom: Headroom | None = None  # as seen from outside
    usage: list[Usage] = []  # of the loaders' workers
    images: Measured | None = None  # what operations on images cost; None: it was not wished for
    read: list[Finding] = []  # what reading the program's files says, as they were then
    paced: list[Paced] | None = None  # what its files say it does only every so many times; None: they were not read
    recomputing: list[Control] = []  # settings of it that may make it compute activations again
    told: Told | None = None  # what was declared, as its files were when the program ended


def save(folder: Path, run: RunFile) -> None:
    """Write it, whole or not at all."""
    partial = folder / (NAME + ".part")
    partial.write_bytes(msgspec.json.encode(run))
    partial.replace(folder / NAME)


def load(folder: Path) -> RunFile:
    """Read it back."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=RunFile)
    except FileNotFoundError:
        raise RecordError(f"{folder} holds no floorit run (no {NAME})") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise RecordError(f"{folder / NAME} cannot be read: {error}") from None
