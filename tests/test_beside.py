"""A report beside the truth: what counts as named, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from test_truth import ABOVE, BELOW, written

from floorit import truth
from floorit.analyse.ledger import Entry, Line
from floorit.diagnose import Finding
from floorit.hardware import Environment
from floorit.report import beside
from floorit.report.model import Program, Report
from floorit.stats import Estimate

TARGETS = "import numpy\ndef targets(n):\n    for y in range(n):\n        pass\n\n\ndef other():\n    pass\n"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    folder = written(tmp_path / "toy", ABOVE + BELOW.format(key="cpu", scale="cpu"))
    (folder / "data").mkdir()
    (folder / "data" / "targets.py").write_text(TARGETS)
    (folder / "train.py").write_text("\n" * 8 + "loss.item()\n")
    return folder


def at(line: int, file: str = "/elsewhere/toy/data/targets.py") -> Line:
    return Line(file=file, line=line, function="f", share=1.0)


def finding(code: str, *where: Line) -> Finding:
    return Finding(code=code, title="t", share=0.5, bound=2.0, evidence=[], where=list(where))


def report(findings: list[Finding], where: list[Line] | None = None, **more: Any) -> Report:
    entry = Entry(
        phase="data_wait", seconds=0.1, share=1.0, gpu_seconds=more.pop("gpu_seconds", None), where=where or []
    )
    return Report(
        program=Program(command=["x"], exit_code=0, seconds=1.0),
        environment=Environment(gpu="NVIDIA H200"),
        run=None,
        step=None,
        ledger=[entry],
        workers=None,
        gpu=None,
        machine=None,
        floor=None,
        syncs=[],
        settings=[],
        findings=findings,
        missing=[],
        ranks=[],
        record="r",
        summary="s",
    )


def first(drawn: Report, case: Path, scale: truth.Scale = "cpu") -> beside.Row:
    return beside.compare(drawn, truth.load(case), case, scale).rows[0]


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (["input-bound", "loss-bound"], "verdict"),
        (["loss-bound", "input-bound"], "also"),
        (["loss-bound"], None),
        ([], None),
    ],
)
def test_a_finding_is_the_verdict_another_or_missing(case: Path, codes: list[str], found: str | None) -> None:
    assert first(report([finding(code) for code in codes]), case).found == found


@pytest.mark.parametrize(
    ("line", "placed"),
    [(at(3), "line"), (at(4), "function"), (at(8), None), (at(3, "/elsewhere/toy/targets.py"), None)],
)
def test_a_place_is_the_line_or_its_function(case: Path, line: Line, placed: str | None) -> None:
    assert first(report([finding("input-bound", line)]), case).placed == placed
    assert first(report([], [line]), case).placed == placed


def test_only_faults_of_the_scale_are_listed(case: Path) -> None:
    known = truth.load(case)
    assert [row.fault.name for row in beside.compare(report([]), known, case, "cpu").rows] == ["draw"]
    assert [row.fault.name for row in beside.compare(report([]), known, case, "gpu").rows] == ["draw", "item"]


def drawn(told: beside.Beside) -> str:
    console = Console(width=100, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(beside.render(told))
        return console.export_text()


def test_the_table_says_the_gain_with_its_spread_date_and_device(case: Path) -> None:
    told = drawn(beside.compare(report([finding("input-bound", at(3))]), truth.load(case), case, "cpu"))
    assert "as expected" in told
    assert "2.00x faster (1.90 to 2.10)" in told
    assert "2026-11-15" in told
    assert "measured on cpu" in told
    assert "data/targets.py:3" in told


def test_another_verdict_and_another_device_are_said(case: Path) -> None:
    known = truth.load(written(case, ABOVE + BELOW.format(key="h100", scale="gpu")))
    told = drawn(beside.compare(report([finding("loss-bound")], gpu_seconds=0.1), known, case, "gpu"))
    assert "not as expected, sync-bound" in told
    assert "h100, which this machine is not" in told


def test_nothing_measured_is_said(case: Path) -> None:
    known = truth.load(written(case, ABOVE))
    told = drawn(beside.compare(report([]), known, case, "cpu"))
    assert "not measured" in told
    assert "cases/measure.py" in told


@pytest.mark.parametrize(
    ("low", "high", "n", "said"),
    [
        (1.4, 1.6, 5, "1.50x faster (1.40 to 1.60)"),
        (0.9, 1.1, 5, "unclear: 1.00x (0.90 to 1.10)"),
        (0.7, 0.9, 5, "slower: 0.80x (0.70 to 0.90)"),
        (1.5, 1.5, 1, "1.50x as fast, one pair"),
    ],
)
def test_a_gain_that_cannot_be_told_is_not_called_one(low: float, high: float, n: int, said: str) -> None:
    assert beside.factor(Estimate(value=(low + high) / 2, low=low, high=high, n=n)) == said
