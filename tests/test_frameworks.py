"""Programs of real frameworks, run by hand: `FRAMEWORKS=/path/to/python pytest -m acceptance tests/test_frameworks.py`.

The frameworks are not among what the tests install; a program whose framework that Python lacks is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import execute, recorded, report_of

pytestmark = pytest.mark.acceptance

PROGRAMS = Path(__file__).parent / "frameworks"
PYTHON = os.environ.get("FRAMEWORKS", sys.executable)
LEFT_OVER = 0.02  # of the step that may have no name
AGREES, ABSOLUTE = 0.15, 0.3e-3  # how far a phase may be from the program's own timers: of it, and seconds a step
STEPPING = ("step", "clip", "zero_grad")


@dataclass(frozen=True)
class Program:
    """One way to start a program, and what is true of it."""

    name: str
    needs: str
    steps: int
    arguments: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    accumulation: float = 1.0
    ranks: int = 1
    callback: str | None = None
    phases: dict[str, tuple[str, ...]] = field(default_factory=dict)  # phase -> names of timers

    def __str__(self) -> str:
        return " ".join([*self.launcher[:1], self.name, *self.arguments])

    def command(self) -> list[str]:
        launcher = [str(Path(PYTHON).parent / self.launcher[0]), *self.launcher[1:]] if self.launcher else [PYTHON]
        return [*launcher, str(PROGRAMS / f"{self.name}.py"), *self.arguments]


IN_STEP = {"forward": ("forward",), "backward": ("backward",), "optimizer": STEPPING, "checkpoint": ("checkpoint",)}
HISTOGRAM, VOCABULARY = "Histogram.on_train_batch_end", "Vocabulary.on_step_end"
ALL = (
    Program("lightning_auto", "lightning", 120, callback=HISTOGRAM, phases=IN_STEP),
    Program("lightning_auto", "lightning", 120, ("--accumulate", "4"), accumulation=4, callback=HISTOGRAM),
    Program("lightning_auto", "lightning", 60, ("--devices", "2"), ranks=2, callback=HISTOGRAM),
    Program("lightning_manual", "lightning", 200, callback="Norms.on_before_optimizer_step"),
    Program("hf_trainer", "transformers", 120, callback=VOCABULARY, phases=IN_STEP),
    Program("hf_trainer", "transformers", 120, ("--accumulate", "4"), accumulation=4),
    Program("hf_trainer", "transformers", 100, ("--max-steps", "100")),
    Program("accelerated", "accelerate", 240, ("--accumulate", "2"), accumulation=2, phases=IN_STEP),
    Program("accelerated", "accelerate", 240, launcher=("accelerate", "launch", "--cpu", "--num_processes", "1")),
    Program("plain_ddp", "torch", 120, launcher=("torchrun", "--nproc_per_node", "2"), ranks=2),
)


@pytest.fixture(params=ALL, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    chosen: Program = request.param
    if subprocess.run([PYTHON, "-c", f"import {chosen.needs}"], capture_output=True).returncode:
        pytest.skip(f"{chosen.needs} is not installed for {PYTHON}")
    return chosen


def losses(output: bytes) -> bytes:
    """The line that a program ends with."""
    return next(line for line in output.splitlines() if line.startswith(b"losses"))


def reported(program: Program, folder: Path, **environ: str) -> tuple[dict[str, Any], bytes]:
    """The report of a run, which ended well, and what the program printed."""
    cwd = folder / "recorded"
    cwd.mkdir()
    ended = recorded(program.command(), folder / "run", cwd, **environ)
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    report = report_of(folder / "run")
    assert report is not None
    return report, ended.stdout


def test_trains_as_it_does_without_us_and_is_told_right(program: Program, tmp_path: Path) -> None:
    bare = execute(program.command(), tmp_path)
    report, output = reported(program, tmp_path)
    assert losses(output) == losses(bare.stdout)
    facts = report["run"]
    assert (facts["steps"], facts["accumulation"], facts["ranks"]) == (
        program.steps,
        program.accumulation,
        program.ranks,
    )
    mean = report["step"]["mean"]
    assert sum(entry["seconds"] for entry in report["ledger"]) == pytest.approx(mean, rel=1e-6)
    ledger = {entry["phase"]: entry for entry in report["ledger"]}
    assert ledger["unattributed"]["seconds"] < LEFT_OVER * mean
    if program.callback is not None:
        functions = [line["function"].partition(".<locals>")[0] for line in ledger["other"]["where"]]
        assert program.callback in functions


def test_phases_are_as_long_as_the_programs_own_timers_say(program: Program, tmp_path: Path) -> None:
    if not program.phases:
        pytest.skip("no phase of it is timed")
    report, _ = reported(program, tmp_path, TIMERS_OUT=str(tmp_path / "timers.json"))
    own = json.loads((tmp_path / "timers.json").read_text())["seconds"]
    steps = report["run"]["steps"]
    for phase, names in program.phases.items():
        found = next(entry["seconds"] for entry in report["ledger"] if entry["phase"] == phase)
        timed = sum(own[name] for name in names) / steps
        assert found == pytest.approx(timed, rel=AGREES, abs=ABSOLUTE), phase
