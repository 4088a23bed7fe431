"""A case's report beside what is known of the case: which faults it names, and what each was measured to cost."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath
from typing import Literal

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from floorit.report.model import Report
from floorit.stats import Estimate
from floorit.truth import Fault, Gain, Measured, Scale, Truth, device_key

_FOUND = {"verdict": "the verdict", "also": "also named", None: "not named"}
_PLACED = {"line": "at its line", "function": "at its function", None: "not its place"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, and what the report says of it."""

    fault: Fault
    found: Literal["verdict", "also"] | None  # its finding: the first, another, or none
    placed: Literal["line", "function"] | None  # what the report points to, under any heading
    gain: Gain | None  # as measured before


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """All faults of a case at one scale; `device` is what the gains were measured on."""

    truth: Truth
    expected: list[str]  # codes of the first findings
    given: list[str]
    rows: list[Row]
    device: str | None
    measured: Measured | None
    same_device: bool

    @property
    def agrees(self) -> bool:
        """Whether the first findings are those that are expected, in whichever order."""
        return sorted(self.expected) == sorted(self.given)


def compare(report: Report, truth: Truth, folder: Path, scale: Scale, regime: str | None = None) -> Beside:
    """Lay the two side by side; `folder` has the case's source."""
    on_gpu = any(entry.gpu_seconds is not None for entry in report.ledger)
    here = device_key(report.environment.gpu if on_gpu else None, scale, regime)
    device, measured = truth.measured_on(here, scale) or (None, None)
    expected = truth.expected(scale, regime)
    return Beside(
        truth=truth,
        expected=expected,
        given=[finding.code for finding in report.findings[: len(expected)]],
        rows=[
            Row(
                fault=fault,
                found=_found(report, fault),
                placed=_placed(report, truth.case, fault, folder),
                gain=measured.faults.get(fault.name) if measured else None,
            )
            for fault in truth.at(scale, regime)
        ],
        device=device,
        measured=measured,
        same_device=device == here,
    )


def _found(report: Report, fault: Fault) -> Literal["verdict", "also"] | None:
    codes = [finding.code for finding in report.findings]
    if fault.finding not in codes:
        return None
    return "verdict" if codes[0] == fault.finding else "also"


def _placed(report: Report, case: str, fault: Fault, folder: Path) -> Literal["line", "function"] | None:
    at = {line for file, line in _places(report) if is_file(file, case, fault.file)}
    if fault.line in at:
        return "line"
    around = function_around(folder / fault.file, fault.line) if fault.file.endswith(".py") else range(0)
    return "function" if any(line in around for line in at) else None


def _places(report: Report) -> list[tuple[str, int]]:
    """Every source line that the report shows."""
    groups = [entry.where for entry in report.ledger] + [finding.where for finding in report.findings]
    groups += [report.workers.where] if report.workers else []
    return [(at.file, at.line) for group in groups for at in group] + [(at.file, at.line) for at in report.syncs]


def is_file(path: str, case: str, file: str) -> bool:
    """Wherever the case was run from, its folder has its name."""
    tail = (case, *PurePath(file).parts)
    return PurePath(path).parts[-len(tail) :] == tail


def function_around(path: Path, line: int) -> range:
    """The lines of the innermost function around a line; none where it is in no function."""
    functions = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return min((f for f in functions if line in f), key=len, default=range(0))


def render(beside: Beside) -> RenderableType:
    """What is wrong with the case, fault by fault."""
    wanted = " and ".join(beside.expected)
    agreed = f"as expected: {wanted}" if beside.agrees else f"not as expected, {wanted}"
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("what is wrong with it", overflow="fold")
    table.add_column("in this report", no_wrap=True)
    table.add_column("without it", no_wrap=True)
    for row in beside.rows:
        fault = row.fault
        cause = Text.assemble(fault.summary, (f"\n{fault.file}:{fault.line}", "dim"))
        table.add_row(cause, _said(row), _gain(row.gain, fault.gain))
    if beside.measured is not None and beside.measured.all_off is not None:
        table.add_row("all of it", "", _gain(beside.measured.all_off))
    return Group(
        Text(),
        Text.assemble(("truth    ", "dim"), (f"{beside.truth.case}: the findings are {agreed}", "bold")),
        Padding(Text(f'its author says: "{beside.truth.complaint}"'), (0, 0, 0, 9)),
        Text(),
        table,
        Text(),
        Text(_source(beside), style="dim"),
    )


def _said(row: Row) -> Text:
    """The finding that should name it, and below whether it does."""
    named = row.found is not None and row.placed is not None
    text = "no" if row.found is None and row.placed is None else f"{_FOUND[row.found]}, {_PLACED[row.placed]}"
    return Text.assemble(row.fault.finding, "\n", (text, "green" if named else "yellow"))


def _gain(gain: Gain | None, kind: str = "step") -> str:
    """What removing a fault gains; some make room instead of time."""
    measured = "not measured" if gain is None else factor(gain.speedup)
    if kind != "memory":
        return measured
    if gain is None or gain.memory_saved is None:
        return f"{measured}\nwhat it gains is memory"
    return f"{measured}\n{gain.memory_saved / 2**30:.1f} GiB less at the peak"


def factor(speedup: Estimate) -> str:
    """A speed-up with its interval; of one pair of runs there is none."""
    if speedup.n < 2:
        return f"{speedup.value:.2f}x as fast, one pair"
    spread = f"({speedup.low:.2f} to {speedup.high:.2f})"
    if speedup.low > 1:
        return f"{speedup.value:.2f}x faster {spread}"
    return f"{'slower' if speedup.high < 1 else 'unclear'}: {speedup.value:.2f}x {spread}"


def _source(beside: Beside) -> str:
    if beside.measured is None:
        return "what each fault costs has not been measured yet: python cases/measure.py"
    where = beside.device if beside.same_device else f"{beside.device}, which this machine is not"
    return (
        f"without it: measured on {where} ({beside.measured.machine}), {beside.measured.date},"
        f" {beside.measured.rounds} rounds of paired runs, 95 % interval"
    )
