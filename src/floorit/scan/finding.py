"""What reading a project finds; it knows nothing of how, so that others can have it for little."""

from __future__ import annotations

from typing import Literal

import msgspec

from floorit.declared import Control
from floorit.scan.edits import Edit

Risk = Literal["exact", "rounding", "order", "training"]
WAITS = "sync-bound"  # the finding of a run under which waits for the GPU stand


class Paced(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that run only every so many times, and what says how many: `if step % args.log_every == 0`."""

    file: str
    lines: tuple[int, int]  # first and last
    controls: list[Control]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line that slows training."""

    code: str
    file: str
    line: int
    column: int
    lines: tuple[int, int]  # first and last of the statement, or of the loop
    message: str
    costs: str
    instead: str
    when: str  # the code runs: every step, every sample, once
    risk: Risk
    unsafe: str
    fixable: bool  # by --fix
    text: str  # of the line
    function: str
    finding: str = ""  # of a run, that would show what it costs
    spares_function: bool = False  # whether what stands instead spares all that the function around it does
    controls: list[Control] = []  # settings of the program that it is due to
    edits: tuple[Edit, ...] = ()

    @property
    def is_wait(self) -> bool:
        """Whether all that it costs is waiting for the GPU."""
        return self.finding == WAITS


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read."""

    file: str
    line: int
    reason: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a project said."""

    files: int
    trains: bool  # whether a loop that trains was found
    findings: list[Finding]
    problems: list[Problem]
    paced: list[Paced] = []  # what is done only every so many times, where that was asked for
    recomputing: list[Control] = []  # settings that may make the program compute activations again; likewise
