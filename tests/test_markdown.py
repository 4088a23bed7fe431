"""The report as Markdown: every table is one, and says what the report does."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import msgspec
import pytest

from floorit import cli
from floorit.report import markdown
from floorit.report.build import build
from floorit.report.model import Missing, Report

RECORDS = Path(__file__).parent / "records"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("validates_often")
    with tarfile.open(RECORDS / "validates_often.tar.xz") as archive:
        archive.extractall(made, filter="data")
    return made


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return build(folder)


def tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each table by its heading, each as wide as its head."""
    found: dict[str, list[list[str]]] = {}
    for section in text.split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in rest.splitlines() if line.startswith("|")]
        assert len({len(row) for row in rows}) == 1, title
        assert all(set(cell) <= set("-:") for cell in rows[1])
        found[title] = [[cell.strip() for cell in row] for row in rows[2:]]
    return found


def test_the_ledger_adds_up_in_milliseconds(report: Report) -> None:
    *phases, whole = tables(markdown.render(report))["Where a step's time went"]
    assert report.step is not None
    assert float(whole[2].strip("*")) == pytest.approx(report.step.mean * 1e3, abs=0.001)
    assert sum(float(row[2]) for row in phases) == pytest.approx(report.step.mean * 1e3, abs=0.01)
    assert [row[0] for row in phases] == [entry.phase for entry in report.ledger]


def test_findings_fixes_and_what_is_not_advised_are_all_there(report: Report) -> None:
    found = tables(markdown.render(report))
    assert [row[1].split("**")[1] for row in found["What was found"]] == [f.code for f in report.findings]
    assert found["What was found"][0][0] == "verdict"
    fixes = {fix.code for finding in report.findings for fix in finding.fixes}
    told = [row[1].strip("`").partition("=")[0] for row in found["What to do"]]
    assert set(told) == fixes
    assert len(told) == len(set(told))  # one that answers two findings stands there once
    vain = {code for row in found["Not advised"] for code in re.findall(r"`([^`]+)`", row[0])}
    assert vain == {no.code for no in report.findings[0].not_advised}


def test_the_floor_and_the_machine_are_told(report: Report) -> None:
    found = tables(markdown.render(report))
    assert report.floor is not None
    assert found["Floor"][-1][1] == f"**{report.floor.gap:.2f} times**"
    facts = dict(map(tuple, found["The run"]))  # type: ignore[arg-type]
    assert "H200" in facts["GPU"]
    assert "torch 2.11" in facts["versions"]
    assert {row[0]: row[1] for row in found["Settings in force"]}["cudnn.benchmark"] == "false"


def test_a_bar_in_a_value_does_not_tear_a_table(report: Report) -> None:
    torn = Missing(what="a | b", reason="one\ntwo")
    text = markdown.render(msgspec.structs.replace(report, missing=[torn]))
    assert tables(text)["Not measured"] == [["a \\| b", "one two"]]


def test_a_run_that_never_trained_has_its_facts(report: Report) -> None:
    bare = msgspec.structs.replace(report, run=None, step=None, ledger=[], findings=[], summary="nothing trained")
    text = markdown.render(bare)
    assert text.startswith("# floorit: nothing trained\n")
    assert set(tables(text)) == {"The run", "Not measured"}


def test_it_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--markdown", str(folder)]) == 0
    assert capsys.readouterr().out == markdown.render(build(folder))
